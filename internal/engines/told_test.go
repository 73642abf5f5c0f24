package engines_test

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/engines"
)

// TestTold: an error about a card's name lists what the kernels run on, and no other.
func TestTold(t *testing.T) {
	_, err := device.ParseName("sim:nothing")
	if err == nil || strings.Contains(err.Error(), "v100") || !strings.Contains(err.Error(), strings.Join(engines.Simulated(), ", ")) {
		t.Error(err)
	}
	if _, err := device.ParseName("sim:v100-16"); err != nil {
		t.Errorf("a card that is refused when it is opened has a name: %v", err)
	}
}
