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

// AppendSelected appends the cells of src whose bit in sel is 1, in [from, to).
// It copies each run of adjacent selected cells at once.
func (v *Vector) AppendSelected(src *Vector, sel Bitmap, from, to int) {
	for i := sel.Next(from); i >= 0 && i < to; {
		end := i + 1
		for end < to && sel.Get(end) {
			end++
		}
		v.AppendRun(src, i, end)
		i = sel.Next(end)
	}
}

// AppendCell appends one cell, nil for NULL. Cells of fixed width are copied, byte strings aliased.
func (v *Vector) AppendCell(cell []byte) {
	v.grow(1)
	v.SetCell(v.Len-1, cell)
}
