package simt

import "github.com/warpline-ml/warpline/internal/ptx"

// Bank is a kind of register.
type Bank uint8

// The banks of a warp: registers of up to 32 bits, of 64 bits, and predicates (a mask of lanes each).
const (
	Bank32 Bank = iota
	Bank64
	BankPred
	Banks int = 3
)

// BankOf is where a register of a type is kept.
func BankOf(t ptx.Type) Bank {
	switch {
	case t == ptx.Pred:
		return BankPred
	case t.Bits() > 32:
		return Bank64
	}
	return Bank32
}
