package simdebug

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/simrun"
)

// Console is where commands come from and answers go to.
type Console struct {
	In   io.Reader
	Out  io.Writer
	JSON bool // one object a line, both ways
	Echo bool // commands are repeated behind the prompt: they do not come from a terminal
}

// prompt is before a command.
const prompt = "(sim) "

// longest is how long a line of commands may be.
const longest = 1 << 16

// input is a line that was read, or why there is none.
type input struct {
	words []string
	id    any
	line  string
	err   error
}

// Serve debugs a kernel until the commands end. The error is ctx's, that of writing, or says why the kernel cannot be launched.
func Serve(ctx context.Context, c simrun.Config, io Console) error {
	s, first, err := Start(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := io.write(first); err != nil {
		return err
	}
	lines := make(chan input)
	done := make(chan struct{})
	defer close(done)
	go io.read(s, lines, done)
	for {
		if err := io.ask(); err != nil {
			return err
		}
		var in input
		select {
		case in = <-lines:
		case <-ctx.Done():
			return ctx.Err()
		}
		if last, err := io.answer(ctx, s, in); last || err != nil {
			return err
		}
	}
}

// answer carries out what was read. It reports whether that was the last.
func (c Console) answer(ctx context.Context, s *Session, in input) (last bool, err error) {
	var r *Reply
	switch {
	case errors.Is(in.err, io.EOF):
		if !c.JSON {
			fmt.Fprintln(c.Out)
		}
		return true, nil
	case in.err != nil:
		r = failed("", advice.Failf(`one object a line, as {"cmd":"break","args":["12"]}`, "%v", in.err))
		if !c.JSON {
			return true, in.err
		}
	case c.JSON && len(in.words) == 0:
		return false, nil // a blank line
	default:
		if c.Echo && !c.JSON {
			fmt.Fprintln(c.Out, in.line)
		}
		if r, err = s.Do(ctx, in.words); err != nil {
			return true, err
		}
	}
	r.ID = in.id
	return r.Quit, c.write(r)
}

func (c Console) ask() error {
	if c.JSON {
		return nil
	}
	_, err := fmt.Fprint(c.Out, prompt)
	return err
}

func (c Console) write(r *Reply) error {
	if c.JSON {
		return json.NewEncoder(c.Out).Encode(r)
	}
	_, err := fmt.Fprint(c.Out, r.Text)
	return err
}

// read reads lines, and lets a launch wait at once that is told to. It ends with the input, or when done is closed.
func (c Console) read(s *Session, lines chan<- input, done <-chan struct{}) {
	give := func(in input) bool {
		select {
		case lines <- in:
			return true
		case <-done:
			return false
		}
	}
	scan := bufio.NewScanner(c.In)
	scan.Buffer(nil, longest)
	for scan.Scan() {
		in := c.parse(scan.Text())
		if len(in.words) == 1 && find(in.words[0]) != nil && find(in.words[0]).name == "pause" {
			s.Interrupt()
		}
		if !give(in) {
			return
		}
	}
	if err := scan.Err(); err != nil {
		give(input{err: fmt.Errorf("the commands cannot be read: %w", err)})
	}
	give(input{err: io.EOF})
}

// parse makes words of a line.
func (c Console) parse(line string) input {
	if !c.JSON {
		return input{words: strings.Fields(line), line: line}
	}
	if strings.TrimSpace(line) == "" {
		return input{}
	}
	var m struct {
		ID   any      `json:"id"`
		Cmd  string   `json:"cmd"`
		Args []string `json:"args"`
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return input{err: fmt.Errorf("no command: %w", err)}
	}
	if m.Cmd == "" {
		return input{id: m.ID, err: errors.New(`no command: "cmd" is missing`)}
	}
	return input{words: append([]string{m.Cmd}, m.Args...), id: m.ID}
}
