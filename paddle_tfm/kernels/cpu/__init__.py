"""oneDNN, the library of kernels that Paddle's wheel ships, called through its C interface without a compiler.

`library` finds it and says what the processor has; `gemm` multiplies matrices; `primitives` is for every other kernel
(engine, memory over a tensor's own numbers, primitives kept by shape). All of it is for the CPU.
"""
