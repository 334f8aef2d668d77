// What a reader with eyes would see wrong on this page: texts beyond the window or their box, short words that are broken
// in two lines, and texts of too little contrast (WCAG 2.1: 4.5:1, large ones 3:1). Colours are the computed ones, over all backgrounds behind a text.
(() => {
  const shown = (element) => {
    const style = getComputedStyle(element);
    if (style.visibility === "hidden" || !element.checkVisibility()) return false;
    for (let at = element; at; at = at.parentElement) if (getComputedStyle(at).clipPath !== "none") return false;
    return element.getClientRects().length > 0;
  };
  const rgba = (text) => {
    const numbers = text.match(/[\d.]+/g).map(Number);
    return numbers.length === 3 ? [...numbers, 1] : numbers;
  };
  const over = (top, below) => below.map((value, i) => top[3] * top[i] + (1 - top[3]) * value);
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const path = (element) => element.tagName.toLowerCase() + (element.className.baseVal === undefined && element.className
    ? "." + element.className : "");

  const width = document.documentElement.clientWidth;
  const wide = [], faint = [], small = [];
  let least = 21, texts = 0;
  if (document.documentElement.scrollWidth > width) wide.push(`page: ${document.documentElement.scrollWidth} > ${width}`);
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest(".skip") || element.closest("title")) continue;
    if (!shown(element)) continue;
    const box = element.getBoundingClientRect();
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join("").trim();
    if (element.clientWidth && element.scrollWidth > element.clientWidth + 1 && !element.closest("svg"))
      wide.push(`${path(element)} scrolls: ${element.scrollWidth} > ${element.clientWidth}: ${element.textContent.slice(0, 40)}`);
    if (!element.closest("svg") && (box.right > width + 0.5 || box.left < -0.5))
      wide.push(`${path(element)} from ${box.left} to ${box.right}: ${element.textContent.slice(0, 40)}`);
    if (!text || element.closest("svg") || element.tagName === "STYLE") continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize), behind = background(element);
    const ratio = contrast(over(rgba(style.color), behind), behind);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    texts += 1;
    least = Math.min(least, ratio);
    if (ratio < (large ? 3 : 4.5)) faint.push(`${path(element)} ${ratio.toFixed(2)}: ${text.slice(0, 40)}`);
    if (size < 12) small.push(`${path(element)} ${size}px: ${text.slice(0, 40)}`);
  }
  for (const element of document.querySelectorAll("svg .line, svg .mean, svg .interval, svg .dot, i.swatch")) {
    if (!shown(element)) continue;
    const style = getComputedStyle(element), behind = background(element.closest("figure, div, td"));
    const colour = rgba(element.tagName === "I" ? style.backgroundColor : style.stroke);
    const ratio = contrast(over(colour, behind), behind);
    if (ratio < 3) faint.push(`${path(element)} of a figure ${ratio.toFixed(2)}`);
  }
  const broken = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (element.closest("code, svg, style, .skip") || !shown(element)) continue;
    for (const word of node.data.matchAll(/[A-Za-z0-9.,%_]+/g)) {
      if (word[0].length > 14) continue; // longer ones may have no room
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (tops.size > 1 && getComputedStyle(element).writingMode === "horizontal-tb")
        broken.push(`${path(element)} breaks ${word[0]}`);
    }
  }
  for (const labels of document.querySelectorAll(".xlabels")) {
    const boxes = [...labels.children].filter(shown).map((label) => label.getBoundingClientRect());
    for (let i = 1; i < boxes.length; i++)
      if (boxes[i].left < boxes[i - 1].right + 2) wide.push(`${labels.children[i].textContent} runs into another name`);
  }
  return { wide, faint, small, broken, least, texts };
})()
