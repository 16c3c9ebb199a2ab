package keyed

import "testing"

func TestValues(t *testing.T) {
	var s Values[string, *int]
	made := 0
	first := func() *int { made++; return new(int) }
	a, leaveA := s.Use("k", first)
	b, leaveB := s.Use("k", first)
	other, leaveOther := s.Use("l", first)
	if a != b || a == other || made != 2 || s.Len() != 2 {
		t.Errorf("%p %p %p, %d made, %d in use", a, b, other, made, s.Len())
	}
	leaveA()
	if c, leave := s.Use("k", first); c != b {
		t.Error("what somebody uses was made anew")
	} else {
		leave()
	}
	leaveB()
	leaveOther()
	if s.Len() != 0 {
		t.Errorf("%d stay behind", s.Len())
	}
	if _, leave := s.Use("k", first); made != 3 {
		t.Error("what nobody used was kept")
	} else {
		leave()
	}
}
