// Package keyed has values that are there for as long as somebody uses their key.
package keyed

import "sync"

// Values hold a value for each key that somebody uses, and nothing for any other. Those that there are none of are ready for use.
type Values[K comparable, V any] struct {
	mu    sync.Mutex
	byKey map[K]*value[V]
}

type value[V any] struct {
	value V
	users int
}

// Use returns the value of a key until done is called, once: the one that others use, or else what first makes.
func (s *Values[K, V]) Use(key K, first func() V) (v V, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.byKey[key]
	if used == nil {
		if s.byKey == nil {
			s.byKey = map[K]*value[V]{}
		}
		used = &value[V]{value: first()}
		s.byKey[key] = used
	}
	used.users++
	return used.value, func() { s.leave(key, used) }
}

func (s *Values[K, V]) leave(key K, used *value[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if used.users--; used.users == 0 {
		delete(s.byKey, key)
	}
}

// Len is how many keys are in use.
func (s *Values[K, V]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey)
}
