package main

import (
	"errors"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/machine"
)

// opened counts how often a card that would be the best device was opened: a context takes a driver half a second.
var opened int

func init() {
	device.Register("costly", device.Engine{Rank: 9, Open: func(device.Name) (device.Device, error) {
		opened++
		return nil, errors.New("there is no such card")
	}})
}

// TestStartOpensNoDevice runs commands that compute nothing, or on a device that was named: none looks for a better one.
func TestStartOpensNoDevice(t *testing.T) {
	opened = 0
	for _, args := range [][]string{
		{"version"}, {"--help"}, {"eval", "--help"}, {"check", "--list"}, {"sim", "cards"},
		{"check", "--device", "cpu", "--ops", "exp", "--short"},
		{"train", "mlp", "--device", "null:a100-80", "--steps", "1", "--out", t.TempDir() + "/run"},
	} {
		if status, _, stderr := command(t.Context(), args...); status != exitDone || opened != 0 {
			t.Errorf("%v: status %d, %d devices opened\n%s", args, status, opened, stderr)
		}
	}
	if name, _ := machine.Best(); name != "cpu" && name != "cuda:0" || opened != 1 { // the latter on a machine with a card
		t.Errorf("the best device is %s, and the costly one was opened %d times to find it", name, opened)
	}
}
