package kineto

import (
	"context"
	"io"
)

// ahead reads a stream on a goroutine of its own, so that decompression goes on while events are taken apart.
type ahead struct {
	full, free chan []byte
	stop       chan struct{}
	done       chan struct{}
	piece      []byte // what is left of the last piece
	last       []byte // the whole of it
	err        error  // of the stream; read once full is closed
	ctx        context.Context
}

const pieces, pieceSize = 3, 1 << 20

// readAhead begins to read r. close must be called before r is used otherwise.
func readAhead(ctx context.Context, r io.Reader) *ahead {
	a := &ahead{full: make(chan []byte, pieces), free: make(chan []byte, pieces),
		stop: make(chan struct{}), done: make(chan struct{}), ctx: ctx}
	for range pieces {
		a.free <- make([]byte, pieceSize)
	}
	go a.run(r)
	return a
}

func (a *ahead) run(r io.Reader) {
	defer close(a.done)
	defer close(a.full)
	for {
		var b []byte
		select {
		case <-a.stop:
			return
		case <-a.ctx.Done():
			a.err = a.ctx.Err()
			return
		case b = <-a.free:
		}
		n, err := fill(r, b)
		if n > 0 {
			a.full <- b[:n]
		}
		if err != nil {
			a.err = err
			return
		}
	}
}

// fill reads until b is full or the stream has ended, with the stream's own error: io.ErrUnexpectedEOF is one that broke off.
func fill(r io.Reader, b []byte) (n int, err error) {
	for idle := 0; n < len(b) && err == nil; idle++ {
		var m int
		m, err = r.Read(b[n:])
		n += m
		if m > 0 {
			idle = 0
		}
		if idle > 100 {
			err = io.ErrNoProgress
		}
	}
	return n, err
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	if len(a.piece) == 0 {
		if a.last != nil {
			a.free <- a.last
			a.last = nil
		}
		b, ok := <-a.full
		if !ok {
			if a.err == nil {
				return 0, io.EOF
			}
			return 0, a.err
		}
		a.piece, a.last = b, b[:cap(b)]
	}
	n := copy(p, a.piece)
	a.piece = a.piece[n:]
	return n, nil
}

// close ends the goroutine, once the read that it may be in returns.
func (a *ahead) close() {
	close(a.stop)
	<-a.done
}
