/* Elements and links. Data reach the page as text only: nothing here parses markup. */
"use strict";

const dom = (() => {
  /**
   * Make an element.
   *
   * @param {string} name - Tag name.
   * @param {Object} attributes - `on*` keys are listeners, `--*` keys are custom properties,
   *   true and false set and leave out an attribute, anything else is its text.
   * @param {...(Node|string|number|null)} children - Strings become text; null is left out.
   */
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (key.startsWith("--")) made.style.setProperty(key, value);
      else if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== null) made.setAttribute(key, value);
    }
    made.append(...children.flat().filter((child) => child !== null));
    return made;
  }

  /** A stranger's text, kept from turning the direction of what stands around it. */
  function name(text) {
    return element("bdi", {}, text);
  }

  /** A link out of the site; text where the address is anything but http or https. */
  function outward(address, text) {
    let parsed;
    try {
      parsed = new URL(address);
    } catch {
      return name(text);
    }
    if (!["http:", "https:"].includes(parsed.protocol)) return name(text);
    return element("a", { href: parsed.href, rel: "noopener noreferrer" }, name(text));
  }

  return Object.freeze({ element, name, outward });
})();
