package simdebug

import (
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/simrun"
)

// Reply is what a command answers. Its JSON is documented, and stays; of the parts each command has its own.
type Reply struct {
	ID        any              `json:"id,omitempty"` // of the command
	OK        bool             `json:"ok"`
	Cmd       string           `json:"cmd,omitempty"`
	Error     string           `json:"error,omitempty"`
	Hint      string           `json:"hint,omitempty"`
	Stop      *Stop            `json:"stop,omitempty"`
	Registers []*Values        `json:"registers,omitempty"`
	Memory    *Memory          `json:"memory,omitempty"`
	Lanes     []Lane           `json:"lanes,omitempty"`
	Warps     []Warp           `json:"warps,omitempty"`
	Blocks    []Block          `json:"blocks,omitempty"`
	Source    []SourceLine     `json:"source,omitempty"`
	Breaks    []*Break         `json:"breaks,omitempty"`
	Watches   []*Watch         `json:"watches,omitempty"`
	Findings  []simrun.Finding `json:"findings,omitempty"`
	Text      string           `json:"text,omitempty"` // the same for people
	Quit      bool             `json:"-"`
}

// failed is the reply to a command that cannot be done.
func failed(cmd string, err *advice.Error) *Reply {
	return &Reply{Cmd: cmd, Error: err.Text, Hint: err.Hint, Text: "error: " + err.Text + "\nhint: " + err.Hint + "\n"}
}
