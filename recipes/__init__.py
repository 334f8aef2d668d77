"""The recipes that ship with paddle_tfm, as YAML files beside this one."""
