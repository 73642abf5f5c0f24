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
		if c.Memory < GiB || c.SMs < 1 || c.Compute[0] < 5 || c.Source == "" || c.Model == "" || c.L2 < mib || c.Link < 1 {
			t.Errorf("%+v lacks a fact", c)
		}
	}
	// Clocks of memory and chip are known to lie in these ranges, so that a slip in a column shows.
	for _, c := range All {
		if k := c.MemoryClock(); k < 800_000 || k > 15_000_000 || c.Clock < 1400 || c.Clock > 2600 {
			t.Errorf("%s: memory at %d kHz, multiprocessors at %d MHz", c.Name, k, c.Clock)
		}
	}
	if c, _ := Find("rtx-4090"); c.MemoryClock() != 10_500_000 {
		t.Error(c.MemoryClock())
	}
	if c, ok := Find(Default); !ok || c.Name != Default {
		t.Error(c, ok)
	}
	if _, ok := Find("h900"); ok {
		t.Error("a card that does not exist is found")
	}
}
