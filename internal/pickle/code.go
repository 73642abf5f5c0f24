package pickle

import (
	"fmt"
)

// global is a name of code that a file may call, and what stands for it.
type global struct {
	name string
	call func(args []any) (any, error)
}

// refused are the opcodes that are not of plain data, by their names in CPython's Lib/pickletools.py.
var refused = map[byte]string{
	'0': "POP", '1': "POP_MARK", '2': "DUP", 'F': "FLOAT", 'I': "INT", 'L': "LONG", 'S': "STRING", 'T': "BINSTRING", 'U': "SHORT_BINSTRING",
	'V': "UNICODE", 'B': "BINBYTES", 'C': "SHORT_BINBYTES", 'g': "GET", 'p': "PUT", 0x8e: "BINBYTES8", 0x8f: "EMPTY_SET", 0x90: "ADDITEMS",
	0x91: "FROZENSET", 0x96: "BYTEARRAY8", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}

// calling are the opcodes that look code up or call it.
var calling = map[byte]string{
	'c': "GLOBAL", 0x93: "STACK_GLOBAL", 'i': "INST", 'o': "OBJ", 'R': "REDUCE", 'b': "BUILD", 0x81: "NEWOBJ", 0x92: "NEWOBJ_EX",
	0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 'P': "PERSID", 'Q': "BINPERSID",
}

// code does the opcodes of known globals, and refuses all others by their names.
func (d *decoder) code(op byte) error {
	if name := refused[op]; name != "" {
		return fmt.Errorf("%s is no opcode of the data that is read here", name)
	}
	switch op {
	case opGlobal, opInst:
		return d.named(op)
	case opStackGlobal:
		return d.stackGlobal()
	case opReduce:
		return d.call()
	}
	if name := calling[op]; name != "" {
		return fmt.Errorf("%s %w", name, ErrCode)
	}
	return fmt.Errorf("%#02x is no opcode", op)
}

// named is a global whose module and name are lines of the file.
func (d *decoder) named(op byte) error {
	module, err := d.in.line()
	if err != nil {
		return err
	}
	name, err := d.in.line()
	if err != nil {
		return err
	}
	if op == opInst {
		return fmt.Errorf("INST %q %q %w", module, name, ErrCode)
	}
	return d.global("GLOBAL", module, name)
}

func (d *decoder) stackGlobal() error {
	items, err := d.popN(2)
	if err != nil {
		return err
	}
	module, ok1 := items[0].(string)
	name, ok2 := items[1].(string)
	if !ok1 || !ok2 {
		return fmt.Errorf("STACK_GLOBAL %w", ErrCode)
	}
	return d.global("STACK_GLOBAL", module, name)
}

func (d *decoder) global(op, module, name string) error {
	call := d.Known[module+" "+name]
	if call == nil {
		return fmt.Errorf("%s %q %q %w", op, clip(module), clip(name), ErrCode)
	}
	return d.push(global{module + " " + name, call})
}

func clip(s string) string { return s[:min(len(s), 100)] }

// call gives the arguments of a known global to what stands for it.
func (d *decoder) call() error {
	items, err := d.popN(2)
	if err != nil {
		return err
	}
	g, ok1 := items[0].(global)
	args, ok2 := items[1].(*ReadList)
	if !ok1 || !ok2 {
		return fmt.Errorf("REDUCE %w", ErrCode)
	}
	v, err := g.call(args.Items)
	if err != nil {
		return fmt.Errorf("%s: %w", g.name, err)
	}
	return d.push(v)
}
