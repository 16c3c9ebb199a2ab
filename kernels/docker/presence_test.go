package docker

import (
	"testing"
	"testing/synctest"
)

func TestPresence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p presence
		if !p.awaitNone(t.Context()) {
			t.Fatal("there is a connection, though none was added")
		}
		none, stop := p.whileNone(t.Context())
		first := p.add()
		synctest.Wait()
		if none.Err() == nil {
			t.Error("nobody was told of the first connection")
		}
		stop()
		second := p.add()
		first()
		waited := make(chan bool, 2)
		await := func() {
			go func() { waited <- p.awaitNone(t.Context()) }()
			synctest.Wait()
		}
		if await(); len(waited) != 0 {
			t.Error("one of two connections is left, and nobody waits for its end")
		}
		second()
		if !<-waited {
			t.Error("the last connection has gone, and nobody was told")
		}
		defer p.add()()
		await()
		p.disregard()
		if !<-waited || len(waited) != 0 {
			t.Error("a connection that is to be disregarded counts")
		}
		if none, stop := p.whileNone(t.Context()); none.Err() != nil {
			t.Error("a connection that is to be disregarded counts")
		} else {
			stop()
		}
	})
}
