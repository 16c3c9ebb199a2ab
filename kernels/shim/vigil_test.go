//go:build linux

package shim

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestVigilEndsInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := keepVigil(time.Hour)
		for range 3 { // each word begins the hour again
			time.Sleep(59 * time.Minute)
			v.heard()
		}
		time.Sleep(time.Hour - time.Second)
		if isOver(v) {
			t.Fatal("it ended before its time")
		}
		time.Sleep(2 * time.Second)
		if !isOver(v) {
			t.Fatal("an hour of silence did not end it")
		}
		v.heard() // too late, and harmless
		v.close()
	})
}

func TestVigilWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever, closed := keepVigil(0), keepVigil(time.Hour)
		closed.close()
		for _, v := range []*vigil{forever, closed} {
			v.heard()
			time.Sleep(10_000 * time.Hour)
			if isOver(v) {
				t.Errorf("one with a patience of %v ended", v.patience)
			}
		}
	})
}

func isOver(v *vigil) bool {
	synctest.Wait()
	select {
	case <-v.over:
		return true
	default:
		return false
	}
}
