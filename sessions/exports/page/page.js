
"use strict";
(() => {
  const box = document.getElementById("find");
  const found = document.getElementById("found");
  const sections = [...document.querySelectorAll("main > section")];
  const links = [...document.querySelectorAll("nav li")];
  const articles = sections.map((section) => [...section.querySelectorAll("article")]);
  const texts = articles.map((group) => group.map((article) => fold(article.textContent)));
  const heads = sections.map((section) => fold(section.querySelector("h1").textContent));
  let marked = [];
  let timer = 0;

  function fold(text) {
    return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  }

  function unmark() {
    for (const mark of marked) {
      const parent = mark.parentNode;
      mark.replaceWith(...mark.childNodes);
      parent.normalize();
    }
    marked = [];
  }

  function mark(article, words) {
    const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    for (const node of nodes) {
      const lower = node.data.toLowerCase();
      const word = words.find((one) => lower.includes(one));
      if (!word || lower.length !== node.data.length) continue;
      const match = node.splitText(lower.indexOf(word));
      match.splitText(word.length);
      const element = document.createElement("mark");
      match.replaceWith(element);
      element.append(match);
      marked.push(element);
    }
  }

  function search() {
    unmark();
    const words = fold(box.value).split(/\s+/).filter(Boolean);
    let count = 0;
    sections.forEach((section, index) => {
      const titled = words.every((word) => heads[index].includes(word));
      let any = titled;
      articles[index].forEach((article, place) => {
        const hit = words.length > 0 && words.every((word) => texts[index][place].includes(word));
        article.hidden = words.length > 0 && !hit && !titled;
        if (!hit) return;
        any = true;
        count += 1;
        for (const details of article.querySelectorAll("details")) details.open = true;
        if (count <= 500) mark(article, words);
      });
      section.hidden = !any;
      if (links[index]) links[index].hidden = !any;
    });
    found.textContent = words.length === 0 ? "" : count === 1 ? "1 message" : `${count} messages`;
  }

  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== box) {
      event.preventDefault();
      box.focus();
    } else if (event.key === "Escape" && document.activeElement === box) {
      box.value = "";
      search();
    }
  });
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
