// Package viewer shows people what a model does: its sessions, live, in a browser, and lets them take part.
//
// # The ground that all pages stand on
//
// Pages are html/template (templates/), in small partials; what moves are a few ES modules (assets/), embedded and served
// under an address with a digest of them all, so that they may be cached for ever. Nothing is bundled, and nothing comes from
// another origin.
//
//   - A route (routes.go) has a pattern, the scope that it needs and a handler, func(w, r, visit) error. The error is shown as a
//     page or as JSON, whichever was asked for, by its kind. A route that changes something names its action: its request
//     must carry the CSRF token of its sign-in, and the audit log hears of it before and after. One that shows
//     what the log is to hear of names what it reads. Bodies are bounded.
//   - A visit (visit.go) is who asks: the principal that the token behind the cookie verifies to, with the same owner and scopes
//     that it has as a bearer token. visit.can asks for a scope.
//   - The session page (session_page.go) is made of three parts, each with a template, a Go file, a module and a style sheet of
//     its name: cells, editor, panel. A part adds its routes in xRoutes and gives its template its data in xPart.
//   - Live: a page subscribes to topics (live.go; package live has the transport). In a module:
//     import {subscribe} from './live.js'; subscribe('session:ID', cursor, (event, data) => …).
//     A topic is a live.Topic; sessions.Manager.Changed tells when to look again.
//   - What a module sends, it sends with import {post} from './send.js', which adds the CSRF token and throws what the server says.
//     HTML of the server's becomes nodes with import {fragment} from './fragment.js' and in no other way: the policy of the
//     pages has Trusted Types on, and refuses strings everywhere else. There is no inline script or style.
//   - Times are <time datetime=RFC 3339 data-show="time|ago|left|elapsed">; times.js writes them in the reader's zone and keeps
//     them going. Questions before something is lost: import {confirm} from './dialog.js'. Errors and news: import {tell} from
//     './toast.js'. Keys: import {keys} from './keys.js', which also fills the list that ? shows.
//   - Colours, sizes and fonts are the variables of app.css, light and dark; a part's own style sheet defines none.
package viewer
