package kudurow

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// serverPasses is what a server does with a predicate: it compares numbers so that NaN equals all.
func serverPasses(t schema.Type, p *kudurpcpb.ColumnPredicatePB, cell []byte) bool {
	if _, ok := p.Predicate.(*kudurpcpb.ColumnPredicatePB_IsNull_); ok {
		return cell == nil
	}
	if cell == nil {
		return false
	}
	switch of := p.Predicate.(type) {
	case *kudurpcpb.ColumnPredicatePB_IsNotNull_:
		return true
	case *kudurpcpb.ColumnPredicatePB_Equality_:
		return batch.Compare(t, cell, of.Equality.Value) == 0
	case *kudurpcpb.ColumnPredicatePB_InList_:
		for _, v := range of.InList.Values {
			if batch.Compare(t, cell, v) == 0 {
				return true
			}
		}
		return false
	case *kudurpcpb.ColumnPredicatePB_Range_:
		lower, upper := of.Range.Lower, of.Range.Upper
		return (lower == nil || batch.Compare(t, cell, lower) >= 0) && (upper == nil || batch.Compare(t, cell, upper) < 0)
	}
	return false
}

// someCell returns a cell that is often one of few, an extreme, or a NaN.
func someCell(r *rand.Rand, c *schema.Column) []byte {
	if cell := randomCell(r, c); cell == nil || c.Type.Variable() || r.IntN(2) == 0 || c.Type == schema.Bool {
		return cell
	}
	if c.Type.Float() {
		x := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, 1.5}[r.IntN(7)]
		if c.Type == schema.Float {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x)))
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
	}
	cell := bytes.Repeat([]byte{[]byte{0, 0xff}[r.IntN(2)]}, c.Type.Width())
	if r.IntN(2) == 0 {
		cell[len(cell)-1] ^= 0x80
	}
	return cell
}

// A cell passes the predicate if it passes what the server and the client test. What the server tests
// alone is all, except of floating-point columns, ≠, and patterns.
func TestPredicatesOnRandomCells(t *testing.T) {
	r := seedtest.Rand(t)
	passed, client := 0, 0
	for range seedtest.Rounds(60_000, 20_000) {
		c := schema.Column{Name: "c", Type: valueTypes[r.IntN(len(valueTypes))], Nullable: r.IntN(2) == 0, Length: 8,
			Precision: 9, ID: 1}
		s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int8}, normal(c)}, 1))(t)
		col := &s.Columns[1]
		p := somePredicate(r, col)
		tests := must.Get(Predicates(s, []batch.Predicate{p}))(t)
		client += len(tests.Client)
		p.Type = col.Type
		for range 10 {
			cell := someCell(r, col)
			want := p.EvalCell(cell)
			server := !tests.None
			for _, q := range tests.Server {
				server = server && serverPasses(col.Type, q, cell)
			}
			got := server
			for _, q := range tests.Client {
				got = got && q.EvalCell(cell)
			}
			if got != want || want && !server {
				t.Fatalf("%s column: %s %x on %x: %v, want %v; the server tests %v", col.TypeName(), p.Op, p.Values, cell, got,
					want, tests.Server)
			}
			if want {
				passed++
			}
		}
	}
	if passed < 1000 || client == 0 {
		t.Errorf("%d cells passed, %d predicates for the client", passed, client)
	}
}

// normal gives a column the attributes that its type has.
func normal(c schema.Column) schema.Column {
	switch c.Type {
	case schema.Varchar:
		c.Precision = 0
	case schema.Decimal32:
		c.Length = 0
	case schema.Decimal64:
		c.Precision, c.Length = 18, 0
	case schema.Decimal128:
		c.Precision, c.Length = 38, 0
	default:
		c.Precision, c.Length = 0, 0
	}
	return c
}

func somePredicate(r *rand.Rand, c *schema.Column) batch.Predicate {
	p := batch.Predicate{Column: c.Name, Op: batch.Operator(1 + r.IntN(int(batch.NotNull)))}
	if c.Type.Variable() && r.IntN(4) == 0 {
		p.Op = batch.Like
	}
	present := *c
	present.Nullable = false
	values := 0
	switch p.Op {
	case batch.IsNull, batch.NotNull:
	case batch.In:
		values = r.IntN(4)
	case batch.Like:
		values = 2 + r.IntN(2)
	default:
		values = 1
	}
	for i := range values {
		p.Values = append(p.Values, someCell(r, &present))
		if p.Op == batch.Like && i == values-1 && r.IntN(2) == 0 {
			p.Values[i] = []byte{}
		}
	}
	return p
}

func TestPredicateMessages(t *testing.T) {
	s := exampleSchema(t)
	one := func(column string, op batch.Operator, values ...string) string {
		p := batch.Predicate{Column: column, Op: op}
		for _, v := range values {
			p.Values = append(p.Values, []byte(v))
		}
		tests := must.Get(Predicates(s, []batch.Predicate{p}))(t)
		switch {
		case tests.None:
			return "none"
		case len(tests.Server) == 0:
			return "all"
		}
		text := must.Get(prototext.MarshalOptions{}.Marshal(tests.Server[0]))(t)
		return string(bytes.ReplaceAll(text, []byte("  "), []byte(" ")))
	}
	for got, want := range map[string]string{
		one("k", batch.Le, "\xff\xff\xff\x7f"):                 `column:"k" is_not_null:{}`,
		one("k", batch.Gt, "\xff\xff\xff\x7f"):                 `none`,
		one("k", batch.Le, "\xff\x00\x00\x00"):                 `column:"k" range:{upper:"\x00\x01\x00\x00"}`,
		one("s", batch.Gt, "a"):                                `column:"s" range:{lower:"a\x00"}`,
		one("s", batch.Like, "ab", ""):                         `column:"s" range:{lower:"ab" upper:"ac"}`,
		one("s", batch.In, "b", "a", "b"):                      `column:"s" in_list:{values:"a" values:"b"}`,
		one("s", batch.In):                                     `none`,
		one("s", batch.Eq, ""):                                 `column:"s" equality:{value:""}`,
		one("v", batch.IsNull):                                 `column:"v" is_null:{}`,
		one("k", batch.IsNull):                                 `none`,
		one("v", batch.Ne, "\x00\x00\x00\x00\x00\x00\x00\x00"): `column:"v" is_not_null:{}`,
	} {
		must.Equal(t, got, want)
	}
	must.Fail(t, must.Err(Predicates(s, []batch.Predicate{{Column: "kk", Op: batch.IsNull}})), fault.ErrNoColumn)
	must.Fail(t, must.Err(Predicates(s, []batch.Predicate{{Column: "k", Op: batch.Eq, Values: [][]byte{{1}}}})),
		fault.ErrSchema)
}
