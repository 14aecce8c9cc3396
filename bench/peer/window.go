package peer

// WindowRows is the number of rows in a Window.
const WindowRows = 4096

// Window contains the columns of some rows, for peers that return columns.
type Window struct{ Columns }

// NewWindow returns a window with room for WindowRows rows of all columns that queries read.
func NewWindow() *Window {
	long := func() []int64 { return make([]int64, WindowRows) }
	text := func() [][]byte { return make([][]byte, WindowRows) }
	return &Window{Columns{PartKey: long(), Quantity: long(), Price: long(), Discount: long(), Tax: long(),
		ShipDate: make([]int32, WindowRows),
		Flag:     text(), Status: text(), Mode: text()}}
}

// Long returns the column of that name, nil if it is not of type int64.
func (w *Window) Long(name string) []int64 {
	switch name {
	case "l_partkey":
		return w.PartKey
	case "l_quantity":
		return w.Quantity
	case "l_extendedprice":
		return w.Price
	case "l_discount":
		return w.Discount
	case "l_tax":
		return w.Tax
	}
	return nil
}

// Text returns the column of that name, nil if it is not a string column.
func (w *Window) Text(name string) [][]byte {
	switch name {
	case "l_returnflag":
		return w.Flag
	case "l_linestatus":
		return w.Status
	case "l_shipmode":
		return w.Mode
	}
	return nil
}
