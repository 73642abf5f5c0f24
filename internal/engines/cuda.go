package engines

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

func init() {
	device.Register("cuda", device.Engine{Rank: 2, Open: openCUDA, Count: countCUDA})
	device.Register("sim", device.Engine{Cards: cards.Names(), Told: Simulated(), Open: openSim})
}

// library is the driver of this machine, opened once there is need of it.
var library = sync.OnceValues(func() (*driver.API, error) {
	api, _, err := libcuda.Open()
	return api, err
})

// countCUDA is how many devices the driver has; none without a driver.
func countCUDA() int {
	api, err := library()
	if err != nil {
		return 0
	}
	n, r := api.DeviceGetCount()
	if r != driver.Success {
		return 0
	}
	return n
}

func openCUDA(n device.Name) (device.Device, error) {
	api, err := library()
	if err != nil {
		return nil, err
	}
	return open(api, n, true)
}

// Simulated are the cards that the engine's kernels run on: devices named sim imitate them, and refuse the others when they are
// opened, as a driver's are refused.
func Simulated() (names []string) {
	for _, c := range cards.All {
		if slices.Compare(c.Compute[:], cuda.Oldest[:]) >= 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

// SimEnv has the checks and schedules of simulated GPUs, as simcuda.ParseConfig reads them.
const SimEnv = "WARPLINE_SIM"

// SimChecks reports whether SimEnv has simulated GPUs look for more than illegal accesses.
func SimChecks() bool {
	c, err := simcuda.ParseConfig(os.Getenv(SimEnv))
	return err == nil && c.Checks&^gpusim.Memcheck != 0
}

// unnamed is how many GPUs there are where a name gives no number.
const unnamed = 8

// systems are the simulated machines, one for each card and number of GPUs.
var systems = struct {
	sync.Mutex
	apis map[device.Name]*driver.API
}{apis: map[device.Name]*driver.API{}}

func openSim(n device.Name) (device.Device, error) {
	if n.Count == 0 && n.Index >= unnamed {
		card := cmp.Or(n.Card, cards.Default)
		return nil, fmt.Errorf("there are %d simulated GPUs, 0 to %d, where the name gives no number of them; up to 16 are written as in sim:%sx16:%d",
			unnamed, unnamed-1, card, min(n.Index, 15))
	}
	api, err := system(device.Name{Card: n.Card, Count: n.Count})
	if err != nil {
		return nil, err
	}
	return open(api, n, false)
}

func open(api *driver.API, n device.Name, preload bool) (device.Device, error) {
	s, err := device.FromEnvironment()
	if err != nil {
		return nil, err
	}
	return cuda.New(api, n.Index, n.String(), cuda.Options{Blocking: s.Blocking, Preload: preload})
}

// Simulate opens a simulated GPU of a machine of its own, with checks and schedules by the words of SimEnv.
func Simulate(card, words string) (device.Device, error) {
	n := device.Name{Kind: "sim", Card: cmp.Or(card, cards.Default), Count: 1}
	api, err := machine(n, words)
	if err != nil {
		return nil, err
	}
	return open(api, n, false)
}

// machine is a new one of simulated GPUs.
func machine(n device.Name, words string) (*driver.API, error) {
	c, err := simcuda.ParseConfig(words)
	if err != nil {
		return nil, err
	}
	c.Card, c.Devices = cmp.Or(n.Card, cards.Default), cmp.Or(n.Count, unnamed)
	s, err := simcuda.New(c)
	if err != nil {
		return nil, err
	}
	return s.API(), nil
}

func system(n device.Name) (*driver.API, error) {
	systems.Lock()
	defer systems.Unlock()
	if api := systems.apis[n]; api != nil {
		return api, nil
	}
	words := os.Getenv(SimEnv)
	if _, err := simcuda.ParseConfig(words); err != nil {
		return nil, fmt.Errorf("%s: %w", SimEnv, err)
	}
	api, err := machine(n, words)
	if err != nil {
		return nil, err
	}
	systems.apis[n] = api
	return api, nil
}
