/** Elements in one expression. */

type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, value);
    } else if (typeof value === "boolean") {
      element.toggleAttribute(name, value);
    } else {
      element.setAttribute(name, value);
    }
  }
  element.append(...children);
  return element;
}

export function style(css: string): void {
  document.head.append(el("style", {}, css));
}
