package auth

import (
	"context"
	"testing"
)

func TestOwnerTellsCallersApart(t *testing.T) {
	principals := []Principal{
		{Issuer: "", Subject: "ab"}, {Issuer: "a", Subject: "b"}, {Issuer: "ab", Subject: ""},
		{Issuer: "a:b", Subject: "c"}, {Issuer: "a", Subject: ":bc"}, {Issuer: "a", Subject: "b:c"},
		{Issuer: "1", Subject: "1:1"}, {Issuer: "11", Subject: ":1"}, {Issuer: "1:1", Subject: "1"},
		{Issuer: "é", Subject: "x"}, {Issuer: "e", Subject: "\u0301x"},
	}
	seen := map[string]Principal{}
	for _, p := range principals {
		if other, ok := seen[p.Owner()]; ok {
			t.Errorf("%+v and %+v are both %q", p, other, p.Owner())
		}
		seen[p.Owner()] = p
		p.ClientID, p.Scopes = "c", []string{"s"}
		if _, ok := seen[p.Owner()]; !ok {
			t.Errorf("%+v: the owner depends on more than issuer and subject", p)
		}
	}
}

func FuzzOwner(f *testing.F) {
	f.Add("a", "b", "ab", "")
	f.Fuzz(func(t *testing.T, i1, s1, i2, s2 string) {
		a, b := Principal{Issuer: i1, Subject: s1}, Principal{Issuer: i2, Subject: s2}
		if (a.Owner() == b.Owner()) != (i1 == i2 && s1 == s2) {
			t.Errorf("%q %q and %q %q: %q %q", i1, s1, i2, s2, a.Owner(), b.Owner())
		}
	})
}

func TestContext(t *testing.T) {
	if p, ok := FromContext(context.Background()); ok {
		t.Errorf("a principal out of nothing: %+v", p)
	}
	p, ok := FromContext(NewContext(context.Background(), Principal{Subject: "ada"}))
	if !ok || p.Subject != "ada" {
		t.Errorf("%+v, %v", p, ok)
	}
}
