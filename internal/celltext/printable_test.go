package celltext

import (
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestPrintableEscapesControlCharacters(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"plain text", "plain text"}, {"größer 東京 🙂", "größer 東京 🙂"},
		{"a\x1b[2Jb", `a\u001b[2Jb`}, {"C1 \u009b31m", `C1 \u009b31m`}, {"\x7f", `\u007f`},
		{"bidi \u202egnp.exe", `bidi \u202egnp.exe`}, {"\u2066x\u2069", `\u2066x\u2069`},
		{"zero\u200bwidth\ufeff", `zero\u200bwidth\ufeff`},
		{"a\nb\tc\r", `a\nb\tc\r`}, {"bad \xff\xc3", `bad \xff\xc3`}, {"\ufffd", "\ufffd"},
		{"\U000e0041", `\U000e0041`},
	} {
		must.Equal(t, Printable(c.text), c.want, c.text)
	}
}
