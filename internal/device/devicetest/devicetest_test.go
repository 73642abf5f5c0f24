package devicetest_test

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	"github.com/warpline-ml/warpline/internal/null"
)

// TestNull runs everything on a device without memory; real ones are tested in their packages.
func TestNull(t *testing.T) {
	card, ok := cards.Find(cards.Default)
	if !ok {
		t.Fatal("no default card")
	}
	devicetest.Run(t, func() device.Device { return null.New("null", card) })
}
