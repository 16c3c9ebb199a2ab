package transport

import (
	"container/list"
	"sync"
)

// lru remembers up to a number of values and forgets the one that was used longest ago.
type lru[V any] struct {
	mu    sync.Mutex
	max   int
	order list.List // of lruEntry[V], last used in front
	byKey map[string]*list.Element
}

type lruEntry[V any] struct {
	key   string
	value V
}

func newLRU[V any](max int) *lru[V] {
	return &lru[V]{max: max, byKey: map[string]*list.Element{}}
}

func (l *lru[V]) put(key string, value V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.byKey[key]; ok {
		e.Value = lruEntry[V]{key, value}
		l.order.MoveToFront(e)
		return
	}
	l.byKey[key] = l.order.PushFront(lruEntry[V]{key, value})
	if l.order.Len() > l.max {
		oldest := l.order.Remove(l.order.Back()).(lruEntry[V])
		delete(l.byKey, oldest.key)
	}
}

func (l *lru[V]) get(key string) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byKey[key]
	if !ok {
		return value, false
	}
	l.order.MoveToFront(e)
	return e.Value.(lruEntry[V]).value, true
}

func (l *lru[V]) remove(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.byKey[key]; ok {
		l.order.Remove(e)
		delete(l.byKey, key)
	}
}
