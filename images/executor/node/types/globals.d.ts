// What the kernel adds to Node's globals.
type MimeBundle = Record<string, unknown>
interface DisplayHandle {
  readonly id: string
  update(value: unknown, options?: { raw?: boolean }): void
}
interface Display {
  /** Shows a value at once. With raw it is a MIME bundle, {"text/html": "…"}. */
  (value: unknown, options?: { raw?: boolean, id?: string }): DisplayHandle
  html(source: string): DisplayHandle
  markdown(source: string): DisplayHandle
  latex(source: string): DisplayHandle
  svg(source: string): DisplayHandle
  text(text: string): DisplayHandle
  json(value: unknown): DisplayHandle
  png(image: Uint8Array | string): DisplayHandle
  jpeg(image: Uint8Array | string): DisplayHandle
  update(id: string, value: unknown, options?: { raw?: boolean }): void
  clear(wait?: boolean): void
}
declare const display: Display
declare const prompt: { (text?: string, fallback?: string): string, password(text?: string): string }
