// say.js: the words of the page, keyed by the English ones; the table is src/sink/say.c, which the page carries.
"use strict";

const data = (id) => JSON.parse(document.getElementById(id).textContent);

const language = {
  now: document.documentElement.lang === "zh" ? "zh" : "en",
  words: new Map(Object.entries(data("words"))),
};

// Words of pitot, and names that come from a document: what the table does not have stays as it is.
function say(english) {
  return (language.now === "zh" && language.words.get(english)) || english;
}
