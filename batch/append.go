package batch

// AppendRun appends cells [from, to) of src, which has v's type. Cells of fixed width are copied,
// byte strings aliased.
func (v *Vector) AppendRun(src *Vector, from, to int) {
	n, k := v.Len, to-from
	if k <= 0 {
		return
	}
	v.grow(k)
	if w := v.Type.Width(); w > 0 {
		copy(v.Data[n*w:], src.Data[from*w:to*w])
	} else if src.Dict != nil {
		for i := from; i < to; i++ {
			v.Bytes[n+i-from] = src.Dict.Words[src.Codes[i]]
		}
	} else {
		copy(v.Bytes[n:], src.Bytes[from:to])
	}
	if src.Present == nil {
		return
	}
	for i := from; i < to; i++ {
		if !src.Present.Get(i) {
			v.NeedPresent().Clear(n + i - from)
			if v.Type.Variable() {
				v.Bytes[n+i-from] = nil
			}
		}
	}
}

// AppendCoded is AppendRun in dictionary form where possible: v gets the form of src if it is
// empty, and keeps it while src has the same dictionary.
func (v *Vector) AppendCoded(src *Vector, from, to int) {
	n, k := v.Len, to-from
	if src.Dict == nil || k <= 0 || n > 0 && v.Dict != src.Dict {
		v.AppendRun(src, from, to)
		return
	}
	v.Dict, v.Codes = src.Dict, append(v.Codes[:n], src.Codes[from:to]...)
	v.growPresent(n + k)
	v.Len = n + k
	if src.Present == nil {
		return
	}
	for i := from; i < to; i++ {
		if !src.Present.Get(i) {
			v.NeedPresent().Clear(n + i - from)
		}
	}
}

// AppendSelected appends the cells of src whose bit in sel is 1, in [from, to).
// It copies each run of adjacent selected cells at once.
func (v *Vector) AppendSelected(src *Vector, sel Bitmap, from, to int) {
	for i, end := sel.NextRun(from, to); i < end; i, end = sel.NextRun(end, to) {
		v.AppendRun(src, i, end)
	}
}

// AppendCell appends one cell, nil for NULL. Cells of fixed width are copied, byte strings aliased.
func (v *Vector) AppendCell(cell []byte) {
	v.grow(1)
	v.SetCell(v.Len-1, cell)
}

// Truncate removes the cells from the n-th on. Byte strings keep the form they have.
func (v *Vector) Truncate(n int) {
	if n >= v.Len {
		return
	}
	v.Len = n
	switch {
	case v.Dict != nil:
		v.Codes = v.Codes[:n]
	case v.Type.Variable():
		v.Bytes = v.Bytes[:n]
	default:
		v.Data = v.Data[:n*v.Type.Width()]
	}
	if v.Present != nil {
		v.Present = v.Present[:(n+63)/64]
		v.Present.ClearRange(n, 64*len(v.Present))
	}
}
