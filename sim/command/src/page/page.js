"use strict";
/* What a page does when it is pointed at: each chart can be kept as a file, and one waveform can be zoomed.
   Without it the page reads the same. It is well-formed XML where it stands, so it has no ampersand and no "less than". */

const STROKES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin",
  "font-family", "font-size", "font-weight", "text-anchor", "font-variant-numeric"];

const keep = (name, blob) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

/* The picture as a file by itself, in the colours that the reader sees. */
const alone = picture => {
  const copy = picture.cloneNode(true);
  const [seen, made] = [picture, copy].map(of => Array.from(of.querySelectorAll("*")));
  seen.forEach((element, at) => {
    const style = getComputedStyle(element);
    for (const name of STROKES) made[at].setAttribute(name, style.getPropertyValue(name));
    made[at].removeAttribute("class");
  });
  const { width, height } = picture.viewBox.baseVal;
  const ground = document.createElementNS(picture.namespaceURI, "rect");
  const size = { width, height };
  for (const name in size) {
    ground.setAttribute(name, size[name]);
    copy.setAttribute(name, size[name]);
  }
  ground.setAttribute("fill", getComputedStyle(picture.closest("section")).backgroundColor);
  copy.prepend(ground);
  copy.removeAttribute("class");
  copy.removeAttribute("tabindex");
  const text = new XMLSerializer().serializeToString(copy);
  return { width, height, blob: new Blob([text], { type: "image/svg+xml" }) };
};

/* The same as dots, two for each unit of the picture in both directions. */
const dots = picture => new Promise((done, failed) => {
  const { width, height, blob } = alone(picture);
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width * 2, height * 2];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    canvas.toBlob(done, "image/png");
  };
  image.onerror = failed;
  image.src = URL.createObjectURL(blob);
});

/* Draws a window of the wave into the picture, and moves the window. Times are picoseconds. */
const zoomable = (picture, wave, button) => {
  const [LEFT, RIGHT, TOP, ROW] = [180, 952, 26, 22];
  const rows = wave.rows.map(([name, first, steps]) => {
    let at = 0;
    return { name, first, changes: steps.map(step => at += step) };
  });
  const releases = rows.find(row => row.name === wave.level).changes;
  const below = TOP + ROW * rows.length + 8;
  const least = 2000;
  let [from, until, mark, pointer] = [wave.from, wave.until, null, null];
  const x = at => LEFT + (at - from) / (until - from) * (RIGHT - LEFT);
  const time = at => from + (at - LEFT) / (RIGHT - LEFT) * (until - from);
  const put = (name, attributes, words) => {
    const element = document.createElementNS(picture.namespaceURI, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (words) element.textContent = words;
    picture.append(element);
  };
  const words = (at, step) => {
    const [unit, name] = step >= 500000 ? [1e6, "µs"] : step >= 500 ? [1e3, "ns"] : [1, "ps"];
    const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
    return (at / unit).toFixed(digits) + " " + name;
  };
  /* How many changes come before a time. */
  const before = (changes, at) => {
    let [low, high] = [0, changes.length];
    while (high > low) {
      const middle = (low + high) >> 1;
      if (at > changes[middle]) low = middle + 1; else high = middle;
    }
    return low;
  };
  const wire = (row, top) => {
    const level = high => top + ROW * (high ? 0.2 : 0.8);
    const [start, end] = [before(row.changes, from), before(row.changes, until)];
    let high = (row.first + start) % 2 === 1;
    const output = row.name === wave.level;
    put("text", { class: output ? "label strong" : "label", x: LEFT - 10, y: top + ROW / 2 + 3.5, "text-anchor": "end" }, row.name);
    if (end - start > (RIGHT - LEFT) / 2) {
      const [left, right] = [x(row.changes[start]), x(row.changes[end - 1])];
      put("rect", { class: "dense", x: left, y: level(true), width: right - left, height: ROW * 0.6 });
      return;
    }
    let path = `M${LEFT} ${level(high)}`;
    for (const at of row.changes.slice(start, end)) {
      high = !high;
      path += `H${x(at).toFixed(2)}V${level(high)}`;
    }
    put("path", { class: output ? "wire output" : "wire", d: path + "H" + RIGHT });
  };
  const draw = () => {
    picture.replaceChildren();
    const wanted = (until - from) / 8;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map(of => of * power).find(of => of >= wanted);
    for (let at = Math.ceil(from / step) * step; until >= at; at += step) {
      put("line", { class: "grid", x1: x(at), x2: x(at), y1: TOP, y2: below });
      put("text", { class: "tick", x: x(at), y: below + 16, "text-anchor": "middle" }, words(at, step));
    }
    for (const at of releases.slice(before(releases, from), before(releases, until))) {
      put("line", { class: "release", x1: x(at), x2: x(at), y1: TOP - 6, y2: below });
      put("text", { class: "tick strong", x: x(at), y: TOP - 11, "text-anchor": "middle" }, "release");
    }
    rows.forEach((row, at) => wire(row, TOP + ROW * at));
    for (const at of [mark, pointer]) {
      if (at !== null) if (at >= from) if (until >= at) put("line", { class: "mark", x1: x(at), x2: x(at), y1: TOP, y2: below });
    }
    if (pointer !== null) {
      const fine = (until - from) / 1000;
      const since = mark === null ? "" : `, ${words(pointer - mark, fine)} after the mark`;
      put("text", { class: "tick strong", x: LEFT, y: below + 32 }, words(pointer, fine) + since);
    }
  };
  const show = (left, right) => {
    const width = Math.min(Math.max(right - left, least), wave.end);
    from = Math.min(Math.max((left + right - width) / 2, 0), wave.end - width);
    until = from + width;
    draw();
  };
  const zoom = (factor, about) => show(about - (about - from) * factor, about + (until - about) * factor);
  const pan = part => show(from + (until - from) * part, until + (until - from) * part);
  const middle = () => (from + until) / 2;
  const place = event => {
    const box = picture.getBoundingClientRect();
    return (event.clientX - box.left) / box.width * picture.viewBox.baseVal.width;
  };
  const next = () => {
    const later = releases.find(at => at > middle() + least) ?? releases[0];
    const width = until - from;
    show(later - width / 2, later + width / 2);
  };
  const keys = { "+": () => zoom(0.5, middle()), "-": () => zoom(2, middle()), ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25), n: next };
  picture.setAttribute("viewBox", `0 0 960 ${below + 40}`);
  picture.setAttribute("tabindex", "0");
  picture.classList.add("zoomable");
  picture.addEventListener("wheel", event => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, time(place(event)));
  }, { passive: false });
  picture.addEventListener("keydown", event => {
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  let held = null;
  picture.addEventListener("pointerdown", event => {
    held = { at: place(event), from, until, moved: false };
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", event => {
    const at = place(event);
    pointer = at >= LEFT ? Math.min(time(at), until) : null;
    if (!held) return draw();
    const by = (held.at - at) / (RIGHT - LEFT) * (held.until - held.from);
    held.moved = held.moved || Math.abs(held.at - at) > 3;
    show(held.from + by, held.until + by);
  });
  picture.addEventListener("pointerup", event => {
    if (held) if (!held.moved) mark = time(place(event));
    held = null;
    draw();
  });
  picture.addEventListener("pointerleave", () => { pointer = null; draw(); });
  button("+", "zoom in; the wheel does too", keys["+"]);
  button("−", "zoom out", keys["-"]);
  button("◀", "earlier; drag the picture, or press an arrow", keys.ArrowLeft);
  button("▶", "later", keys.ArrowRight);
  button("next release", "show the next release at this scale; or press n", next);
  button("one release", "back to where it began", () => show(wave.from, wave.until));
  button("all", "the whole of it", () => show(0, wave.end));
  draw();
};

for (const section of document.querySelectorAll("section")) {
  const picture = section.querySelector("svg");
  if (!picture) continue;
  const bar = document.createElement("div");
  bar.className = "tools";
  section.prepend(bar);
  const button = (words, says, act) => {
    const made = document.createElement("button");
    [made.type, made.textContent, made.title] = ["button", words, says];
    made.addEventListener("click", act);
    bar.append(made);
  };
  const data = section.querySelector("script");
  if (data) zoomable(picture, JSON.parse(data.textContent), button);
  const name = section.querySelector("h2").textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  button("SVG", "keep this chart as a drawing", () => keep(name + ".svg", alone(picture).blob));
  button("PNG", "keep this chart as a picture of dots", async () => keep(name + ".png", await dots(picture)));
}
