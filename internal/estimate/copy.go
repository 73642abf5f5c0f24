package estimate

import "github.com/warpline-ml/warpline/internal/cards"

// What copies and calls take besides their work.
const (
	PerCall       = 2.2e-6 // seconds of the host for a launch
	CopyStart     = 2e-6   // seconds of a copy besides bytes over bandwidth
	PageableShare = 0.45   // of the link's bandwidth that pageable memory gets: 40 to 50 % are commonly measured
)

// Link is the bytes a second that copies between host and device reach.
func Link(card *cards.Card, pinned bool) float64 {
	rate := 1e9 * float64(card.Link)
	if !pinned {
		rate *= PageableShare
	}
	return rate
}

// Copy is the seconds of a copy between host and device.
func Copy(card *cards.Card, bytes int64, pinned bool) float64 {
	return CopyStart + float64(bytes)/Link(card, pinned)
}
