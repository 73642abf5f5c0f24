// Package explore has the small models behind the lab's explorers: a machine of cores that work side by side, a race, copies between
// two memories, and a host that runs ahead of its device. Each is a function of settings whose result is what warpline lab NAME
// --json prints. Rates are those of package cards and of package estimate; nothing is measured here, and every result says so.
package explore

import (
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
)

// Modelled is what each result says of its figures.
const Modelled = "modelled from published rates; nothing was measured"

// card finds a card by its name.
func card(name string) (*cards.Card, error) {
	c, ok := cards.Find(name)
	if !ok {
		return nil, advice.Failf(advice.Meant(name, cards.Names())+"warpline sim cards lists them", "there is no card %q", name)
	}
	return &c, nil
}

// within refuses a number of a flag that is outside its bounds.
func within(name string, v, least, most float64) error {
	if v >= least && v <= most {
		return nil
	}
	plain := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	hint := "give a number from " + plain(least) + " to " + plain(most)
	if least == most {
		hint = "there is only " + plain(least)
	}
	return advice.Failf(hint, "--%s is %s", name, plain(v))
}

// counted is so many of a thing.
func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatInt(n, 10) + " " + thing + "s"
}

// mostElements is more than any card's memory holds.
const mostElements = 1 << 40

// ParseShape reads sizes as in 1024x512 and returns them with their product.
func ParseShape(text string) (shape []int64, elements int64, err error) {
	elements = 1
	for _, word := range strings.Split(text, "x") {
		n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
		if err != nil || n < 1 || n > mostElements/elements {
			return nil, 0, advice.Failf("give sizes with x between, as in 1024x512", "%q is no shape of 1 to %d elements", text, int64(mostElements))
		}
		shape, elements = append(shape, n), elements*n
	}
	return shape, elements, nil
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
