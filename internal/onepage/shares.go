package onepage

import (
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
)

// shares divides the time of a step, as the screen of a profile does.
func shares(f *finding.Facts) []Share {
	steps := time.Duration(max(f.Steps, 1))
	var all []Share
	add := func(name, text string, d time.Duration, idle bool) {
		if d > 0 && f.Took > 0 {
			all = append(all, Share{name, (d / steps).Seconds(), float64(d) / float64(f.Took), idle, text})
		}
	}
	products := min(f.Products, f.Busy-f.Copies) // work side by side counts twice in it
	add("products", "matrix products and convolutions", products, false)
	add("other compute", "all else that is computed", f.Busy-f.Copies-products, false)
	add("copies alone", "nothing ran but copies", f.Copies, false)
	add("idle: loader", "the program waited for a batch", f.Idle.Loader, true)
	add("idle: waits", "the host had waited for the device", f.Idle.Wait, true)
	add("idle: host", "the host was on its way to the next work", f.Idle.Host, true)
	return all
}
