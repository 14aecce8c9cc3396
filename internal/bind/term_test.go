package bind

import (
	"math"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func TestTermsAreExact(t *testing.T) {
	price := schema.Column{Type: schema.Decimal64, Precision: 15, Scale: 2}
	term := TermOf("price")
	for _, step := range []struct {
		name string
		do   func(any) (Term, error)
		v    any
		text string
	}{
		{"times", term.Times, -1, "-price"},
		{"times", term.Times, 0.1, "0.1 * price"},
		{"plus", term.Plus, float32(0.25), "(0.25 + price)"},
		{"plus", term.Plus, 2e3, "(2000 + price)"},
		{"plus", term.Plus, batch.Decimal{Unscaled: batch.Int128Of(150), Scale: 2}, "(1.50 + price)"},
	} {
		got, err := step.do(step.v)
		if text := got.String(); err != nil || text != step.text && text != "("+step.text+")" {
			t.Errorf("%s %v: %s, %v, want %s", step.name, step.v, text, err, step.text)
		}
	}
	sum := must.Get(term.Plus(0.125))(t)
	bound, scale, err := sum.Bind(&price, 3)
	if err != nil || scale != 3 || bound.Column != 3 || bound.Offset != batch.Int128Of(125) ||
		bound.Slope != batch.Int128Of(10) {
		t.Errorf("%+v with %d decimals, %v", bound, scale, err)
	}
	for _, v := range []any{"1", nil, math.NaN(), math.Inf(1), 1e300} {
		if _, err := term.Plus(v); err == nil {
			t.Errorf("plus %v: no error", v)
		}
	}
}
