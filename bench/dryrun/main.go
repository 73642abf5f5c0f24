// Command dryrun collects what kernels do, by what is known of a launch before it: from it fit.py makes internal/counts/kernels.json, by which
// dry runs model the time of a step.
//
//	go run ./bench/dryrun > launches.jsonl
//	python3 bench/dryrun/fit.py launches.jsonl > internal/counts/kernels.json
//	go run ./bench/dryrun -judge launches.jsonl
//
// It trains each program of programs.json for some steps on a simulated card of which 12 blocks of each kind of launch run, and
// writes a line for each launch that differs from the program's others. -pick takes programs by a regular expression of their names, as those that a new kernel
// needs, whose lines join the others. -judge tells how far the times of kernels by the table are from those by what was counted, by program
// and kernel.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/warpline-ml/warpline/internal/counts"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// programs are trainings: by name the task, and settings of [train.Config] by their JSON names, in each of some precisions. Data is made
// up: "SAMPLES CHANNELS SIDE" of pictures, a number of tokens.
//
//go:embed programs.json
var programs []byte

type program struct {
	Name, Task string
	AMP        []string
	Settings   map[string]any
}

// kind of devices that are counted.
const kind = "counted"

func main() {
	log.SetFlags(0)
	pick := flag.String("pick", "", "only programs whose name, as gpt8/bf16, matches this")
	judged := flag.String("judge", "", "compare the table with what this file has")
	flag.Parse()
	var err error
	if *judged != "" {
		err = judge(*judged)
	} else {
		err = collect(*pick)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// collect runs the programs that are picked, and writes what they launch.
func collect(pick string) error {
	picked, err := regexp.Compile(pick)
	if err != nil {
		return err
	}
	var list []program
	if err := json.Unmarshal(programs, &list); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dryrun")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := &collection{dir: dir}
	device.Register(kind, device.Engine{Open: c.open})
	for _, p := range list {
		for _, amp := range p.AMP {
			name := p.Name + "/" + amp
			if !picked.MatchString(name) {
				continue
			}
			if err := c.train(name, p.Task, amp, p.Settings); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// collection is what was seen of launches.
type collection struct {
	dir     string
	devices int
	works   []estimate.Launch // of the launches of the program under way, in order
	lines   []*line           // of it
	seen    map[string]*line
}

func (c *collection) open(n device.Name) (device.Device, error) {
	s, err := simcuda.New(simcuda.Config{Clock: true, Off: true, OnLaunch: func(_ string, r *gpusim.Report) { c.works = append(c.works, r.Work) }})
	if err != nil {
		return nil, err
	}
	return cuda.New(s.API(), 0, n.String(), cuda.Options{})
}

// train runs a program on a device of its own, and writes its lines.
func (c *collection) train(name, task, amp string, settings map[string]any) error {
	config, err := c.config(task, amp, settings)
	if err != nil {
		return err
	}
	env, err := tensor.Open(config.Device)
	if err != nil {
		return err
	}
	c.works, c.lines, c.seen = nil, nil, map[string]*line{}
	stop := env.Device().Observe(c.note, device.KindLaunch)
	began := time.Now()
	_, err = train.Run(context.Background(), config, nil)
	stop()
	if err != nil {
		return err
	}
	log.Printf("%s: %d kinds of launches, %.0f s", name, len(c.lines), time.Since(began).Seconds())
	out := bufio.NewWriter(os.Stdout)
	for _, l := range c.lines {
		l.Program = name
		if err := json.NewEncoder(out).Encode(l); err != nil {
			return err
		}
	}
	return out.Flush()
}

// config is a training with settings, its data made.
func (c *collection) config(task, amp string, settings map[string]any) (config train.Config, err error) {
	if config, err = train.Defaults(task); err != nil {
		return config, err
	}
	c.devices++
	settings = maps.Clone(settings)
	settings["amp"] = amp
	if err := furnish(settings, filepath.Join(c.dir, strconv.Itoa(c.devices))); err != nil {
		return config, err
	}
	raw, err := json.Marshal(settings)
	if err == nil {
		err = json.Unmarshal(raw, &config)
	}
	config.Given = map[string]bool{}
	for name := range settings {
		config.Given[name] = true
	}
	config.Device = fmt.Sprintf("%s:%d", kind, c.devices)
	return config, err
}

// line is a launch with what it did.
type line struct {
	Program, Kernel, Op string // the kernel with the number of kernels of its plan
	Times               int    // that the program has it
	counts.Facts
	Work estimate.Launch
}

// mostNumbers is up to where sizes lie among a kernel's parameters; optimizers have tables behind.
const mostNumbers = 128

// note keeps a launch that is another than those before. The works of the steps of its plan that have yet to be told are there.
func (c *collection) note(e *device.Event) {
	k, s := e.Kernel, &e.Kernel.Steps[e.Step]
	after := counts.Kernels(k.Steps[e.Step:])
	l := &line{Kernel: counts.Row(k, s), Op: k.Op.Code.String(), Facts: *counts.FactsOf(k, s), Work: c.works[len(c.works)-after]}
	l.Numbers = l.Numbers[:min(mostNumbers, len(l.Numbers))]
	key := fmt.Sprint(l.Kernel, l.Grid, l.Numbers, l.Bytes)
	if c.seen[key] == nil {
		c.seen[key] = l
		c.lines = append(c.lines, l)
	}
	c.seen[key].Times++
}

// furnish makes the data that settings ask for, in files that begin with a path.
func furnish(settings map[string]any, path string) error {
	if text, ok := settings["data"].(string); ok {
		var n, channels, side int
		if _, err := fmt.Sscan(text, &n, &channels, &side); err != nil {
			return err
		}
		settings["data"] = path + ".npz"
		return writePictures(path+".npz", n, channels, side)
	}
	if n, ok := settings["tokens"].(float64); ok {
		var raw []byte
		for i := range int(n) {
			raw = binary.LittleEndian.AppendUint16(raw, uint16(i*i%7))
		}
		settings["tokens"] = path + ".bin"
		return os.WriteFile(path+".bin", raw, 0o666)
	}
	return nil
}

// writePictures draws pictures of 10 classes.
func writePictures(path string, n, channels, side int) error {
	size := channels * side * side
	images := &npy.Array{DType: "|u1", Shape: []int{n, channels, side, side}, Data: make([]byte, n*size)}
	labels := &npy.Array{DType: "|u1", Shape: []int{n}, Data: make([]byte, n)}
	for i := range n {
		labels.Data[i] = byte(i * 7 % 10)
		for k := range size {
			images.Data[i*size+k] = byte(i * 31 * (k + 3) % 97)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return npy.WriteZip(f, []npy.Member{{Name: "images", Array: images}, {Name: "labels", Array: labels}}, false)
}
