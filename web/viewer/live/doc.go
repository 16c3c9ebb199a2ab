// Package live carries what happens to browsers, over one server-sent stream that any number of subscriptions share.
//
// A browser opens at most six connections of HTTP/1.1 to a server, so all its tabs share one stream, which a SharedWorker
// holds (assets/live-worker.js). A stream is asked for with a list of subscriptions, each a topic and a cursor:
//
//	GET /live?topic=sessions&after=&topic=session:analysis&after=12.4
//
// It begins with its id. When a tab opens or closes, or wants something else, its subscriptions are added and removed under that id
// (Streams.Change) while those of the other tabs go on:
//
//	POST /live {"stream":"…","first":2,"add":[{"topic":"session:report","after":""}],"remove":[0]}
//
// A Topic is a function that tells what has happened after a cursor and goes on as things happen. What a cursor means is the
// topic's business; each event carries the one that stands behind it, so that a browser which reconnects, to this or a later
// server process, asks each topic for what it has not had: nothing twice, nothing missing. Nothing is queued for slow readers: a topic
// reads from what is kept anyway, at its reader's pace.
//
// On the wire each event is one message of JSON; subscriptions are numbered as they came:
//
//	data: {"sub":0,"after":"12.4","event":"row","data":…}
package live
