package script

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Parse parses a script in the format that String writes. It skips empty lines and lines that begin
// with #.
func Parse(text string) (s *Script, err error) {
	s = &Script{}
	line := 0
	defer func() {
		// People edit scripts: errors name the line.
		if e := recover(); e != nil {
			s, err = nil, fmt.Errorf("prooftest: line %d: %v", line, e)
		}
	}()
	columns, keys := []schema.Column(nil), 0
	finish := func() {
		if columns != nil {
			sc, err := schema.New(columns, keys)
			check(err)
			s.Steps[len(s.Steps)-1].Schema, columns = sc, nil
		}
	}
	for l := range strings.Lines(text) {
		line++
		words := strings.Fields(l)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		f := parseFields(words)
		switch {
		case words[0] == "settings":
			s.Settings = f.settings()
		case words[0] == "column":
			columns = append(columns, f.column())
		case strings.HasPrefix(l, "  "):
			st := &s.Steps[len(s.Steps)-1]
			if a, ok := f.alteration(); ok {
				st.Alter = append(st.Alter, a)
				continue
			}
			st.Ops = append(st.Ops, parseOp(f))
		default:
			finish()
			s.Steps = append(s.Steps, f.step())
			keys = f.int("keys")
		}
	}
	finish()
	return s, nil
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// fields is a line, split into words and name=value pairs.
type fields struct {
	words []string
	named map[string]string
	tests []string
	many  []string
	moves []string
}

func parseFields(words []string) fields {
	f := fields{named: map[string]string{}}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case !ok:
			f.words = append(f.words, w)
		case name == "test":
			f.tests = append(f.tests, value)
		case name == "many":
			f.many = append(f.many, value)
		case name == "move":
			f.moves = append(f.moves, value)
		default:
			f.named[name] = value
		}
	}
	return f
}

func (f fields) int64(name string) int64 {
	if f.named[name] == "" {
		return 0
	}
	n, err := strconv.ParseInt(f.named[name], 10, 64)
	check(err)
	return n
}

func (f fields) int(name string) int { return int(f.int64(name)) }

func (f fields) uint64(name string) uint64 {
	if f.named[name] == "" {
		return 0
	}
	n, err := strconv.ParseUint(f.named[name], 10, 64)
	check(err)
	return n
}

func (f fields) bool(name string) bool { return f.named[name] == "true" }

func (f fields) duration(name string) time.Duration {
	if f.named[name] == "" {
		return 0
	}
	d, err := time.ParseDuration(f.named[name])
	check(err)
	return d
}

func (f fields) settings() Settings {
	return Settings{Seed: f.uint64("seed"), Hybrid: f.bool("hybrid"),
		History: f.duration("history"), FlushBytes: f.int64("flush"),
		RowSetBytes: f.int64("rowset"), Segment: f.int64("segment"), Memory: f.int64("memory"),
		Policy: f.named["policy"], Background: f.bool("background"), Shuffled: f.bool("shuffled"), Keys: f.int("keys"),
		Batch: f.int("batch"), Eager: f.bool("eager"), Scarce: f.bool("scarce")}
}

func (f fields) column() schema.Column {
	t, ok := schema.TypeByName(f.named["type"])
	if !ok {
		panic("unknown type " + f.named["type"])
	}
	c := schema.Column{Name: f.words[1], Type: t, Encoding: schema.Encoding(f.int("encoding")),
		Compression: schema.Compression(f.int("compression")), BlockBytes: int32(f.int("block")),
		Precision: f.int("precision"),
		Scale:     f.int("scale"), Length: f.int("length"), Nullable: f.bool("null"), Immutable: f.bool("immutable"),
		AutoIncrement: f.words[1] == schema.AutoIncrementName}
	if f.bool("array") {
		c.Type, c.Element = schema.Array, t
	}
	c.Default, _ = parseCell(f.named["default"])
	return c
}

func (f fields) step() Step {
	st := Step{Kind: Kind(f.words[0]), Sync: f.bool("sync"), Partial: f.bool("partial"), RowFile: f.bool("rowfile"),
		Expires: f.int("expires"), As: f.named["as"], Name: f.named["name"], During: Kind(f.named["during"]),
		Mask: f.uint64("mask"), Size: f.int("size"), Stop: f.int("stop"), Tx: f.int("tx"), Time: f.duration("time"),
		Exclusive: f.bool("exclusive"), Number: f.int("number")}
	for _, text := range f.moves {
		where, key, _ := strings.Cut(text, ":")
		st.Moves = append(st.Moves, Move{Where(where), parseCells(key)})
	}
	if len(f.words) > 1 {
		st.Table = f.words[1]
	}
	r := &st.Read
	r.AsOf, r.At, r.Limit = f.bool("asof"), mvcc.Timestamp(f.uint64("at")), f.int64("limit")
	r.Until = mvcc.Timestamp(f.uint64("until"))
	for _, key := range f.many {
		st.Keys = append(st.Keys, parseCells(key))
	}
	r.Any, r.Workers, r.Desc, r.Values = f.bool("any"), f.int("workers"), f.bool("desc"), f.bool("values")
	r.Key, r.From, r.To = parseCells(f.named["key"]), parseCells(f.named["from"]), parseCells(f.named["to"])
	if list := f.named["columns"]; list != "*" {
		r.Columns = []int{}
		for n := range strings.SplitSeq(list, ",") {
			if n != "" {
				i, err := strconv.Atoi(n)
				check(err)
				r.Columns = append(r.Columns, i)
			}
		}
	}
	r.Tests = f.predicates()
	return st
}

func (f fields) predicates() (tests []Test) {
	for _, text := range f.tests {
		parts := strings.SplitN(text, ":", 3)
		column, err := strconv.Atoi(parts[0])
		check(err)
		op, err := strconv.Atoi(parts[1])
		check(err)
		tests = append(tests, Test{column, batch.Operator(op), parseCells(parts[2])})
	}
	return tests
}

func parseOp(f fields) Op {
	words := f.words
	ask, ok := opKinds[words[0]]
	if !ok {
		panic("unknown operation " + words[0])
	}
	op := Op{Ask: ask, Table: words[1], Tests: f.predicates(), Operands: parseOperands(f.named["operands"])}
	for _, w := range words[2:] {
		cell, set := parseCell(w)
		op.Cells, op.Set = append(op.Cells, cell), append(op.Set, set)
	}
	return op
}

func parseCells(list string) [][]byte {
	if list == "*" {
		return nil
	}
	cells := [][]byte{}
	for w := range strings.SplitSeq(list, ",") {
		if w != "" {
			cell, _ := parseCell(w)
			cells = append(cells, cell)
		}
	}
	return cells
}

func parseCell(w string) (cell []byte, set bool) {
	switch w {
	case "-", "":
		return nil, false
	case "null":
		return nil, true
	}
	b, err := hex.DecodeString(strings.TrimPrefix(w, "x"))
	check(err)
	return append([]byte{}, b...), true
}
