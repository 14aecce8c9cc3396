package where

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func TestProducts(t *testing.T) {
	s := append(columns(t), schema.Column{ID: 30, Name: "n64*(1-n8)", Type: schema.Int8})
	for _, c := range []struct{ in, want string }{
		{"n64", "12"},
		{` n64 * "odd ""name"`, "12 21"},
		{"n64*(1-n8)", "30"}, // the name of a column
		{"n64 * (1 - n8)*(1+dec)", "12 1e0-1e0*11 1e0+1e0*16"},
		{"(n8)*(-n8)*(2*n8)", "11 0e0-1e0*11 0e0+2e0*11"},
		{"(n8-1.50)*(n8+ 0.5 )", "-150e2+1e0*11 5e1+1e0*11"},
		{"(-1-n8)*(--n8)", ""},
		{"(-1 - -2*n8)*(10 - 3 * n8)", "-1e0+2e0*11 10e0-3e0*11"},
		{"(0.10*n8 + 99999999999999999999999999999999999999)", "99999999999999999999999999999999999999e0+10e2*11"},
	} {
		factors, err := ParseProduct(s, c.in)
		var texts []string
		for _, f := range factors {
			text := fmt.Sprintf("%ve%d+%ve%d*%d", f.Offset.Unscaled, f.Offset.Scale, f.Slope.Unscaled,
				f.Slope.Scale, f.Column.ID)
			text = strings.ReplaceAll(text, "+-", "-")
			texts = append(texts, strings.TrimPrefix(text, "0e0+1e0*"))
		}
		if got := strings.Join(texts, " "); (err == nil) != (c.want != "") || err == nil && got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.in, got, err, c.want)
		}
	}
}

func TestParseProductRefusesInvalidProducts(t *testing.T) {
	s := columns(t)
	for _, c := range []struct{ in, want string }{
		{"", "byte 1: want a column, not the end"},
		{"2*n8", `byte 1: want a column, not "2"`},
		{"n8+1", `byte 3: want "*", not "+"`},
		{"n8 n8", `byte 4: want "*", not "n8"`},
		{"n8*", "byte 4: want a column, not the end"},
		{"nn8", `column "nn8": no such column`},
		{"(1-n8", `byte 6: want ")", not the end`},
		{"(1-n8-2)", `byte 6: want ")", not "-"`},
		{"n8*(1)", "byte 4: want one column"},
		{"(1-2)", "byte 1: want one column"},
		{"(n8-n8)", "byte 1: want one column"},
		{"((n8))", `byte 2: want a column, not "("`},
		{"(1e3*n8)", "byte 2: 1e3: write the number without an exponent"},
		{"(1" + strings.Repeat("0", 40) + "-n8)", "has too many digits"},
		{"(1-n8)%", "byte 7: unexpected '%'"},
	} {
		must.Contain(t, fmt.Sprint(must.Err(ParseProduct(s, c.in))), c.want, c.in)
	}
}
