// Command gopeers is the race's cases in other Go libraries, for ../main.go: lines "bench case n dtype layout threads turns
// clock" in, seconds per turn out, or -1 for what the library cannot do. Its argument is the library: gomlx or gonum. It is a
// module of its own, so that the project does not depend on them. The cases mirror internal/bench.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"runtime"
	"time"
)

// question is a line of the race.
type question struct {
	bench, name string
	n           int
	dtype       string
	threads     int
}

// libraries has the makers of turns; nil is a turn that a library has not.
var libraries = map[string]func(q question) (turn func()){
	"gomlx": gomlx,
	"gonum": gonum,
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 || libraries[os.Args[1]] == nil {
		log.Fatal("name a library: gomlx or gonum")
	}
	make, in := libraries[os.Args[1]], bufio.NewScanner(os.Stdin)
	answers := os.Stdout
	os.Stdout = os.Stderr // GoMLX says there what it was told
	var last question
	var turn func()
	for in.Scan() {
		var q question
		var layout, clock string
		var turns int
		if _, err := fmt.Sscan(in.Text(), &q.bench, &q.name, &q.n, &q.dtype, &layout, &q.threads, &turns, &clock); err != nil {
			log.Fatalf("%q: %v", in.Text(), err)
		}
		if q != last {
			runtime.GOMAXPROCS(q.threads)
			last, turn = q, make(q)
		}
		fmt.Fprintln(answers, seconds(turn, turns))
	}
}

// seconds is the time of a turn once it is warm, at most turns of them and two seconds.
func seconds(turn func(), turns int) float64 {
	if turn == nil {
		return -1
	}
	turn()
	start := time.Now()
	for done := 1; ; done++ {
		turn()
		if took := time.Since(start).Seconds(); done == turns || took > 2 {
			return took / float64(done)
		}
	}
}

// sides are m, n and k of a product, and whether it is one of plain matrices.
func (q question) sides() (m, n, k int, plain bool) {
	switch q.name {
	case "square":
		return q.n, q.n, q.n, true
	case "vector":
		return 1, q.n, q.n, true
	case "tall":
		return q.n, 128, 128, true
	case "odd":
		return q.n, 65, 33, true
	}
	return 0, 0, 0, false
}
