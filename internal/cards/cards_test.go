package cards

import (
	"regexp"
	"slices"
	"testing"
)

func TestCards(t *testing.T) {
	ordered := slices.IsSortedFunc(All, func(a, b Card) int {
		if c := slices.Compare(a.Compute[:], b.Compute[:]); c != 0 {
			return c
		}
		return int(a.Memory/GiB - b.Memory/GiB)
	})
	if !ordered {
		t.Error("the cards are not in order")
	}
	// A name that ends like "x4" would be read as a number of devices.
	count := regexp.MustCompile(`x\d+$|[^a-z0-9-]|^\d+$`)
	for i, c := range All {
		if count.MatchString(c.Name) || slices.Contains(Names()[:i], c.Name) {
			t.Errorf("card %q has a bad name or one that another has", c.Name)
		}
		if c.Memory < GiB || c.SMs < 1 || c.Compute[0] < 5 || c.Source == "" || c.Model == "" {
			t.Errorf("%+v lacks a fact", c)
		}
	}
	if c, ok := Find(Default); !ok || c.Name != Default {
		t.Error(c, ok)
	}
	if _, ok := Find("h900"); ok {
		t.Error("a card that does not exist is found")
	}
}
