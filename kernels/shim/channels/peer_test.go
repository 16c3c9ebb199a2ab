package channels

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// greetingBytes open a ZMTP 3.1 connection with the NULL mechanism.
func greetingBytes() []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10], g[11] = 0xff, 0x7f, 3, 1
	copy(g[12:], "NULL")
	return g
}

// frameBytes is a frame, in the long form where it must be.
func frameBytes(flags byte, body []byte) []byte {
	if len(body) <= 0xff {
		return append([]byte{flags, byte(len(body))}, body...)
	}
	return append(frameHeadBytes(flags, uint64(len(body))), body...)
}

// frameHeadBytes are the nine bytes that claim a size.
func frameHeadBytes(flags byte, size uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{flags | flagLong}, size)
}

func commandBytes(name string, body []byte) []byte {
	return frameBytes(flagCommand, slices.Concat([]byte{byte(len(name))}, []byte(name), body))
}

func property(name, value string) []byte {
	b := append([]byte{byte(len(name))}, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

func readyBytes(socketType string) []byte {
	return commandBytes("READY", property("Socket-Type", socketType))
}

func messageBytes(frames ...[]byte) []byte {
	var b []byte
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		b = append(b, frameBytes(flags, f)...)
	}
	return b
}

// peer is the kernel's side of one channel, by hand.
type peer struct {
	net.Conn
	r     *bufio.Reader
	ready []byte // the other side's READY
}

// newPeer makes conn a ZMTP connection.
func newPeer(conn net.Conn, socketType string) (*peer, error) {
	p := &peer{Conn: conn, r: bufio.NewReader(conn)}
	if _, err := conn.Write(greetingBytes()); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(p.r, make([]byte, 64)); err != nil {
		return nil, err
	}
	var err error
	if _, p.ready, err = p.readFrame(); err != nil {
		return nil, err
	}
	_, err = conn.Write(readyBytes(socketType))
	return p, err
}

func (p *peer) readFrame() (flags byte, body []byte, err error) {
	if flags, err = p.r.ReadByte(); err != nil {
		return 0, nil, err
	}
	size := make([]byte, 1)
	if flags&flagLong != 0 {
		size = make([]byte, 8)
	}
	if _, err = io.ReadFull(p.r, size); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint64(append(make([]byte, 8-len(size)), size...)))
	_, err = io.ReadFull(p.r, body)
	return flags, body, err
}

func (p *peer) readMessage() (frames [][]byte, err error) {
	for {
		flags, body, err := p.readFrame()
		if err != nil {
			return nil, err
		}
		if frames = append(frames, body); flags&flagMore == 0 {
			return frames, nil
		}
	}
}

// fake is a kernel's sockets. Each channel accepts one connection, which its script then serves; without a script what
// connects is to be had from peer.
type fake struct {
	Connection
	peers   map[stream.Channel]chan *peer
	scripts map[stream.Channel]func(net.Conn)
}

var socketTypes = map[stream.Channel]string{
	stream.Shell: "ROUTER", stream.Control: "ROUTER", stream.Stdin: "ROUTER", stream.IOPub: "PUB",
}

func (c Connection) portOf(ch stream.Channel) int {
	return map[stream.Channel]int{
		stream.Shell: c.ShellPort, stream.Control: c.ControlPort, stream.Stdin: c.StdinPort, stream.IOPub: c.IOPubPort,
	}[ch]
}

func newFake(t *testing.T, c Connection, scripts map[stream.Channel]func(net.Conn)) *fake {
	t.Helper()
	f := &fake{Connection: c, peers: make(map[stream.Channel]chan *peer), scripts: scripts}
	var mu sync.Mutex
	var open []io.Closer
	var wg sync.WaitGroup
	for ch := range socketTypes {
		f.peers[ch] = make(chan *peer, 1)
	}
	for ch := range socketTypes {
		network, address := c.address(c.portOf(ch))
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		open = append(open, l)
		mu.Unlock()
		wg.Go(func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			f.serve(ch, conn)
		})
	}
	t.Cleanup(func() {
		mu.Lock()
		for _, o := range open {
			o.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return f
}

func (f *fake) serve(ch stream.Channel, conn net.Conn) {
	if script := f.scripts[ch]; script != nil {
		script(conn)
		return
	}
	p, err := newPeer(conn, socketTypes[ch])
	if err != nil {
		return
	}
	f.peers[ch] <- p
}

// peer returns the kernel's side of a channel.
func (f *fake) peer(ch stream.Channel) *peer { return <-f.peers[ch] }

// connection returns one over ipc in a new, short folder.
func connection(t *testing.T) Connection {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "k")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c, err := NewIPC(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// dial connects to c and closes at the test's end.
func dial(t *testing.T, c Connection, o Options) *Channels {
	t.Helper()
	cs, err := Dial(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// streamMessage returns the frames of a signed message of type stream on IOPub.
func streamMessage(c Connection, text string) [][]byte {
	m := wire.Message{Header: wire.NewHeader("1", "s", "stream"), Content: fmt.Appendf(nil, `{"name":"stdout","text":%q}`, text)}
	frames, err := wire.NewSigner([]byte(c.Key)).Pack(m.Parts())
	if err != nil {
		panic(err)
	}
	return slices.Concat([][]byte{[]byte("topic")}, frames)
}
