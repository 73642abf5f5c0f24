package vetinput

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/vet"
	"github.com/warpline-ml/warpline/internal/vetpy"
)

// File is what reading a program in Python gave.
type File struct {
	Name  string
	Found []vet.Found
	Note  string // what is to be said of it beside
	Err   error
}

// Check reads programs on all processors, and sends what is found in their order.
func Check(ctx context.Context, files []string, stdin io.Reader) <-chan File {
	out := make(chan File)
	waiting := make(chan chan File, 4*runtime.GOMAXPROCS(0))
	go func() {
		defer close(waiting)
		for _, name := range files {
			one := make(chan File, 1)
			select {
			case waiting <- one:
				go func() { one <- check(name, stdin) }() // nobody waits for its end once ctx is over: it may wait for its input
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() {
		defer close(out)
		for one := range waiting {
			select {
			case f := <-one:
				select {
				case out <- f:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// check reads one. That it makes this one fail is told of it alone.
func check(name string, stdin io.Reader) (c File) {
	c.Name = name
	defer func() {
		if errors.Is(c.Err, vetpy.ErrCutShort) {
			c.Note, c.Err = fmt.Sprintf("%s: %v", c.Name, c.Err), nil
		}
		if p := recover(); p != nil {
			c.Err = advice.Failf("report it, with the program if it may be seen", "%s: a mistake in warpline itself: %v", name, p)
		}
	}()
	if name == Stdin {
		c.Name = "standard input"
		c.Found, c.Err = vetpy.CheckReader(c.Name, stdin)
		return c
	}
	c.Found, c.Err = vetpy.CheckFile(name)
	return c
}
