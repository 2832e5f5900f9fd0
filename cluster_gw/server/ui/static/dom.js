// Builds elements and brings a shown tree up to date. Every string becomes text, never HTML: names
// of models and providers are written by people we do not know.

const PROPERTIES = new Set(["value", "checked", "disabled", "open", "selected", "required"]);
const HANDLERS = ["onclick", "onchange", "oninput", "onsubmit", "onkeydown", "ontoggle"];

/**
 * Makes an element.
 *
 * `style` is an object of CSS properties, a name that begins with `on` takes a function, and a value
 * of null, undefined or false leaves the attribute out. Children are nodes or texts, or lists.
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") {
      for (const [rule, text] of Object.entries(value)) element.style.setProperty(rule, text);
    } else if (name.startsWith("on") || PROPERTIES.has(name)) {
      element[name] = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/** Puts children in place of what an element has, changing only what differs. */
export function show(element, ...children) {
  const fresh = element.cloneNode(false);
  fresh.append(...flat(children));
  syncChildren(element, fresh);
}

function sync(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  syncAttributes(old, fresh);
  for (const name of HANDLERS) {
    if (old[name] !== fresh[name]) old[name] = fresh[name];
  }
  if ("checked" in old && old !== document.activeElement) old.checked = fresh.checked;
  if ("disabled" in old) old.disabled = fresh.disabled;
  syncChildren(old, fresh);
}

function syncAttributes(old, fresh) {
  // What somebody has unfolded stays so.
  const kept = old.nodeName === "DETAILS" ? "open" : "";
  for (const { name } of [...old.attributes]) {
    if (name !== kept && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name === kept || old.getAttribute(name) === value) continue;
    // Styles as text would be inline styles, which the policy of the page refuses.
    if (name === "style") old.style.cssText = fresh.style.cssText;
    else old.setAttribute(name, value);
  }
}

function syncChildren(old, fresh) {
  const keyed = new Map();
  const plain = [];
  for (const child of old.childNodes) {
    const key = keyOf(child);
    if (key && !keyed.has(key)) keyed.set(key, child);
    else plain.push(child);
  }
  let place = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const match = takeMatch(child, keyed, plain);
    if (!match) {
      old.insertBefore(child, place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else old.insertBefore(match, place);
    sync(match, child);
  }
  for (const left of [...keyed.values(), ...plain]) left.remove();
}

function takeMatch(child, keyed, plain) {
  const key = keyOf(child);
  if (key) {
    const match = keyed.get(key);
    if (match?.nodeName !== child.nodeName) return null;
    keyed.delete(key);
    return match;
  }
  const at = plain.findIndex((one) => one.nodeName === child.nodeName);
  return at < 0 ? null : plain.splice(at, 1)[0];
}

function keyOf(node) {
  return node.dataset?.key ?? "";
}
