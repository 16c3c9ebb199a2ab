// Package live carries what happens to browsers, over one server-sent stream that any number of subscriptions share.
//
// A browser opens at most six connections of HTTP/1.1 to a server, so all its tabs share one stream, which a SharedWorker
// holds (assets/live-worker.js). A stream is asked for with a list of subscriptions, each a topic and a cursor:
//
//	GET /live?topic=sessions&after=&topic=session:analysis&after=12.4
//
// A Topic is a function that tells what has happened after a cursor and goes on as things happen. What a cursor means is the
// topic's business; each event carries the one that stands behind it. The stream's event id holds the cursors of all
// subscriptions, so that a browser which reconnects, to this or a later server process, gets from each topic what it has
// not had: nothing twice, nothing missing. Nothing is queued for slow readers: a topic reads from what is kept anyway, at its
// reader's pace.
//
// On the wire each event is one message of JSON:
//
//	id: <cursor>,<cursor>,…
//	data: {"sub":0,"event":"row","data":…}
package live
