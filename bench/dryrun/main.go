// Command dryrun collects what kernels do, by what is known of a launch before it: from it fit.py makes internal/counts/kernels.json, by which
// dry runs model the time of a step.
//
//	go run ./bench/dryrun > launches.jsonl
//	python3 bench/dryrun/fit.py launches.jsonl > internal/counts/kernels.json
//
// It trains each program of programs.json for a step or more on a simulated card of which 12 blocks of each kind of launch run, and
// writes a line for each launch that differs from those before. -pick takes programs by name. All of them take an hour, and
// the largest 16 GiB.
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
	"os"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/internal/counts"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// programs are trainings: by name the task, and settings of [train.Config] by their JSON names. Data is made up: "SAMPLES CHANNELS SIDE"
// of pictures, a number of tokens.
//
//go:embed programs.json
var programs []byte

type program struct {
	Name, Task string
	Settings   map[string]any
}

// kind of devices that are counted.
const kind = "counted"

func main() {
	log.SetFlags(0)
	pick := flag.String("pick", "", "only programs whose name contains this")
	flag.Parse()
	var list []program
	if err := json.Unmarshal(programs, &list); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "dryrun")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c := &collection{out: bufio.NewWriter(os.Stdout), seen: map[string]bool{}}
	defer c.out.Flush()
	device.Register(kind, device.Engine{Open: c.open})
	for i, p := range list {
		if strings.Contains(p.Name, *pick) {
			if err := c.train(&p, i, dir); err != nil {
				log.Printf("%s: %v", p.Name, err)
			}
		}
	}
}

// collection is what was seen of launches.
type collection struct {
	out   *bufio.Writer
	seen  map[string]bool
	works []estimate.Launch // of the launches of the program under way
}

func (c *collection) open(n device.Name) (device.Device, error) {
	s, err := simcuda.New(simcuda.Config{Clock: true, Off: true, OnLaunch: func(_ string, r *gpusim.Report) { c.works = append(c.works, r.Work) }})
	if err != nil {
		return nil, err
	}
	return cuda.New(s.API(), 0, n.String(), cuda.Options{})
}

// train runs a program on a device of its own.
func (c *collection) train(p *program, number int, dir string) error {
	config, err := train.Defaults(p.Task)
	if err != nil {
		return err
	}
	if err := furnish(p.Settings, filepath.Join(dir, p.Name)); err != nil {
		return err
	}
	raw, err := json.Marshal(p.Settings)
	if err == nil {
		err = json.Unmarshal(raw, &config)
	}
	if err != nil {
		return err
	}
	config.Given = map[string]bool{}
	for name := range p.Settings {
		config.Given[name] = true
	}
	config.Device = fmt.Sprintf("%s:%d", kind, number)
	env, err := tensor.Open(config.Device)
	if err != nil {
		return err
	}
	c.works = nil
	defer env.Device().Observe(func(e *device.Event) { c.note(p, e) }, device.KindLaunch)()
	_, err = train.Run(context.Background(), config, nil)
	return err
}

// line is a launch with what it did.
type line struct {
	Program, Kernel, Op string // the kernel with the number of kernels of its plan
	Bytes, FLOPs        int64
	Out, In             int // elements
	Grid                [3]int
	Numbers             []int32
	Work                estimate.Launch
}

// mostNumbers is up to where sizes lie among a kernel's parameters; optimizers have tables behind.
const mostNumbers = 128

// note writes a launch that is another than those before. The works of the steps of its plan that have yet to be told are there.
func (c *collection) note(p *program, e *device.Event) {
	k, s := e.Kernel, &e.Kernel.Steps[e.Step]
	after := counts.Kernels(k.Steps[e.Step:])
	l := line{Program: p.Name, Kernel: counts.Row(k, s), Op: k.Op.Code.String(), Bytes: k.Bytes, FLOPs: k.FLOPs, Out: elements(k.Out), In: elements(k.Op.Ins()),
		Grid: s.Grid, Numbers: s.Numbers[:min(mostNumbers, len(s.Numbers))], Work: c.works[len(c.works)-after]}
	key := fmt.Sprint(l.Kernel, l.Grid, l.Numbers, l.Bytes)
	if c.seen[key] {
		return
	}
	c.seen[key] = true
	if err := json.NewEncoder(c.out).Encode(l); err != nil {
		log.Fatal(err)
	}
}

func elements(list []*ir.Type) (n int) {
	for _, t := range list {
		n += t.Size()
	}
	return n
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
