package xid

import (
	"slices"
	"testing"
)

// TestActions: the actions of NVIDIA's catalogue, as DCGM's and other health checkers take them.
func TestActions(t *testing.T) {
	for class, numbers := range map[Class][]int{
		Program: {13, 31, 32, 39, 40, 41, 43, 68, 69, 70, 71, 80, 94},
		Reset:   {46, 48, 62, 64, 95, 109, 110, 119, 120, 140, 143, 155, 156, 158},
		Reboot:  {79}, Power: {54}, Software: {78}, Link: {74, 136, 137, 144, 150},
		Ignore: {63, 37, 38, 45, 107, 141, 154}, Unknown: {167, 7, 500},
	} {
		for _, n := range numbers {
			if c := Of(n); c.Class != class || c.Number != n {
				t.Errorf("%v: %s, want %s", c, c.Class, class)
			}
		}
	}
	if c := Of(9999); c.Class != Unknown || c.String() != "Xid 9999, which this version does not know" {
		t.Error(c)
	}
}

// TestTable: ranges rise and do not meet, and each row's words are there.
func TestTable(t *testing.T) {
	last := 0
	for _, c := range codes {
		if c.from <= last || c.to < c.from || c.name == "" || !slices.Contains(Classes, c.class) {
			t.Errorf("%+v", c)
		}
		last = c.to
		if ill := Ills[c.rule]; ill.Title == "" || ill.Fix == "" || ill.Disproved == "" {
			t.Errorf("%s of %d has no words", c.rule, c.from)
		}
	}
}

// TestNumbers: of every number, the list of its rule and class has it.
func TestNumbers(t *testing.T) {
	for n := range 200 {
		if c := Of(n); c.Name != "" && !slices.Contains(Numbers(c.Rule, c.Class), n) {
			t.Error(c)
		}
	}
	if got := Numbers("D49", Program); !slices.Equal(got, []int{94}) {
		t.Error(got)
	}
}
