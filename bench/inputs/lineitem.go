package inputs

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/oribi-db/oribi/schema"
)

// Item is one row of lineitem. Decimals are unscaled integers with scale 2; dates are days since
// 1970-01-01.
type Item struct {
	OrderKey      int64
	LineNumber    int32
	PartKey       int64
	SuppKey       int64
	Quantity      int64
	ExtendedPrice int64
	Discount      int64
	Tax           int64
	ReturnFlag    string
	LineStatus    string
	ShipDate      int32
	CommitDate    int32
	ReceiptDate   int32
	ShipInstruct  string
	ShipMode      string
	Comment       string
}

// LineitemSchema contains the columns of lineitem; the first two are the key.
func LineitemSchema() (*schema.Schema, error) {
	var columns []schema.Column
	add := func(c schema.Column, names ...string) {
		for _, name := range names {
			c.Name = name
			columns = append(columns, c)
		}
	}
	add(schema.Column{Type: schema.Int64}, "l_orderkey")
	add(schema.Column{Type: schema.Int32}, "l_linenumber")
	add(schema.Column{Type: schema.Int64}, "l_partkey", "l_suppkey")
	add(schema.Column{Type: schema.Decimal64, Precision: 15, Scale: 2}, "l_quantity",
		"l_extendedprice", "l_discount", "l_tax")
	add(schema.Column{Type: schema.String}, "l_returnflag", "l_linestatus")
	add(schema.Column{Type: schema.Date}, "l_shipdate", "l_commitdate", "l_receiptdate")
	add(schema.Column{Type: schema.String}, "l_shipinstruct", "l_shipmode", "l_comment")
	return schema.New(columns, 2)
}

// LineitemRows is the number of rows of lineitem in the corpus.
const LineitemRows = 600_572

// LineitemFields contains the columns in the order of the fields of the text file.
var LineitemFields = []string{"l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity",
	"l_extendedprice", "l_discount", "l_tax",
	"l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate",
	"l_shipinstruct", "l_shipmode", "l_comment"}

// WriteLineitem writes a text file with the first rows of lineitem; 0 = all.
func WriteLineitem(name, corpus string, rows int) error {
	return makeFile(name, func(w io.Writer) error {
		in, err := openLineitem(corpus)
		if err != nil {
			return err
		}
		defer in.Close()
		if rows == 0 {
			_, err := io.Copy(w, in)
			return err
		}
		out := bufio.NewWriterSize(w, 1<<20)
		lines := bufio.NewScanner(in)
		for n := 0; n < rows && lines.Scan(); n++ {
			out.Write(lines.Bytes())
			out.WriteByte('\n')
		}
		if err := lines.Err(); err != nil {
			return err
		}
		return out.Flush()
	})
}

// Items reads a file made by WriteLineitem. A row is valid until the next one; its strings stay
// valid.
func Items(name string) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		f, err := os.Open(name)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		var item Item
		p := parser{words: map[string]string{}}
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			if err := p.item(lines.Bytes(), &item); err != nil {
				yield(nil, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !yield(&item, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// parser parses lines. It interns strings that occur often.
type parser struct {
	rest  []byte
	err   error
	words map[string]string
}

func (p *parser) item(line []byte, it *Item) error {
	p.rest, p.err = line, nil
	it.OrderKey, it.PartKey, it.SuppKey, it.LineNumber = p.integer(), p.integer(), p.integer(), int32(p.integer())
	it.Quantity, it.ExtendedPrice, it.Discount, it.Tax = p.decimal(), p.decimal(), p.decimal(), p.decimal()
	it.ReturnFlag, it.LineStatus = p.word(), p.word()
	it.ShipDate, it.CommitDate, it.ReceiptDate = p.date(), p.date(), p.date()
	it.ShipInstruct, it.ShipMode = p.word(), p.word()
	it.Comment = string(p.field())
	return p.err
}

func (p *parser) field() []byte {
	f, rest, _ := bytes.Cut(p.rest, []byte{'|'})
	p.rest = rest
	return f
}

func (p *parser) digits(f []byte) (v int64) {
	for _, c := range f {
		if c < '0' || c > '9' {
			p.err = fmt.Errorf("not a number: %q", f)
			return 0
		}
		v = v*10 + int64(c-'0')
	}
	return v
}

func (p *parser) integer() int64 { return p.digits(p.field()) }

// decimal parses a number with two decimals or none.
func (p *parser) decimal() int64 {
	whole, part, _ := bytes.Cut(p.field(), []byte{'.'})
	if len(part) != 0 && len(part) != 2 {
		p.err = fmt.Errorf("not a number with two decimals: %q", part)
	}
	return p.digits(whole)*100 + p.digits(part)
}

func (p *parser) date() int32 {
	t, err := time.Parse(time.DateOnly, string(p.field()))
	if err != nil {
		p.err = err
	}
	return int32(t.Unix() / 86400)
}

func (p *parser) word() string {
	f := p.field()
	if w, ok := p.words[string(f)]; ok {
		return w
	}
	w := string(f)
	p.words[w] = w
	return w
}
