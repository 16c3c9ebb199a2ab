package main

import "testing"

func TestSlotsAreTakenOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := takeSlot(dir, serveSlot)
	if err != nil {
		t.Fatal(err)
	}
	second, err := takeSlot(dir, serveSlot)
	if err != nil {
		t.Fatal(err)
	}
	other, err := takeSlot(dir, stdioSlot)
	if err != nil {
		t.Fatal(err)
	}
	if first.name == second.name || other.name == first.name || other.name == second.name {
		t.Fatalf("they have %s, %s and %s", first.name, second.name, other.name)
	}
	if !first.first() || second.first() || !other.first() {
		t.Errorf("of %s, %s and %s the wrong ones are the first of their kind", first.name, second.name, other.name)
	}
	for _, name := range []string{first.name, second.name} {
		if !slotTaken(dir, name) {
			t.Errorf("%s is free while it is held", name)
		}
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{first.name, "s99", "../secret"} {
		if slotTaken(dir, name) {
			t.Errorf("%s is taken and nobody has it", name)
		}
	}
	third, err := takeSlot(dir, serveSlot)
	if err != nil || third.name != first.name {
		t.Errorf("the free slot %s was not taken again: %v, %v", first.name, third, err)
	}
}
