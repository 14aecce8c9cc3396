package jsonin

// Walker iterates over the members of a checked object, or the elements of a checked array.
type Walker struct {
	Name  []byte // the member's name, unescaped; nil in an array
	Value []byte // the value, without surrounding white space

	text   []byte
	pos    int
	object bool
}

// Trim removes white space from both ends of a text.
func Trim(text []byte) []byte {
	for len(text) > 0 && blank(text[0]) {
		text = text[1:]
	}
	for len(text) > 0 && blank(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

// Walk returns a Walker over value, a checked object or array.
func Walk(value []byte) Walker {
	return Walker{text: value, pos: 1, object: value[0] == '{'}
}

// Next advances to the next member and returns false after the last. The text was checked and is
// well-formed.
func (w *Walker) Next() bool {
	w.skip()
	if w.text[w.pos] == '}' || w.text[w.pos] == ']' {
		return false
	}
	if w.object {
		w.Name = String(w.take())
		w.skip()
	}
	w.Value = w.take()
	return true
}

func blank(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// skip skips white space and the separators between members.
func (w *Walker) skip() {
	for blank(w.text[w.pos]) || w.text[w.pos] == ',' || w.text[w.pos] == ':' {
		w.pos++
	}
}

// take consumes the value that begins here.
func (w *Walker) take() []byte {
	from := w.pos
	switch w.text[from] {
	case '"':
		w.passString()
	case '{', '[':
		w.passNested()
	default:
		for !blank(w.text[w.pos]) && w.text[w.pos] != ',' && w.text[w.pos] != '}' && w.text[w.pos] != ']' {
			w.pos++
		}
	}
	return w.text[from:w.pos:w.pos]
}

func (w *Walker) passString() {
	for w.pos++; w.text[w.pos] != '"'; w.pos++ {
		if w.text[w.pos] == '\\' {
			w.pos++
		}
	}
	w.pos++
}

func (w *Walker) passNested() {
	for depth := 0; ; {
		switch w.text[w.pos] {
		case '"':
			w.passString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		w.pos++
		if depth == 0 {
			return
		}
	}
}

// AppendCompact appends a checked value without the white space between its parts. Its strings and
// numbers are as they were.
func AppendCompact(dst, value []byte) []byte {
	for i := 0; i < len(value); {
		switch {
		case value[i] == '"':
			w := Walker{text: value, pos: i}
			w.passString()
			dst = append(dst, value[i:w.pos]...)
			i = w.pos
			continue
		case !blank(value[i]):
			dst = append(dst, value[i])
		}
		i++
	}
	return dst
}
