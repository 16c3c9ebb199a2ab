// Package egress is the way out of a kernel's sandbox, where its profile has one.
//
// The sandbox itself never has a network: only its loopback. There the shim listens, and leads each connection through its
// stream to the server, without reading it. This package serves those connections: it reads what proxy protocol they speak
// (HTTP or SOCKS5, which clients find by HTTP_PROXY and the like), decides by the profile's Policy, resolves the name, decides
// again by the address, and connects to exactly the address that it decided on. So a name that resolves to something else a
// moment later leads nowhere else.
//
// What is read comes from users' code, and is bounded and hostile.
package egress
