// Command shop is the store of a web shop: users, orders, and the stock.
//
// Names and e-mail addresses are unique, orders are listed in pages forward and backward, and 16 goroutines
// sell what is left: never more.
//
//	go run ./examples/shop shop.oribi
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"slices"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
)

// User is a row of the table of users.
type User struct {
	ID   int64  `oribi:"id,key"`
	Name string `oribi:"name,unique"`
	Mail string `oribi:"mail,unique"`
}

// Item is what the shop sells.
type Item struct {
	Name  string        `oribi:"name,key"`
	Price oribi.Decimal `oribi:"price,decimal(18,2)"`
	Left  int64
}

// Order is an item that a user has bought.
type Order struct {
	ID    int64     `oribi:",auto"`
	User  int64     `oribi:"user,index=by_user"`
	Day   time.Time `oribi:"day,date,index=by_user"`
	Item  string
	Price oribi.Decimal `oribi:"price,decimal(18,2)"`
}

// Shop is safe for concurrent use.
type Shop struct {
	store  *oribi.Store
	users  *oribi.TableOf[User]
	items  *oribi.TableOf[Item]
	orders *oribi.TableOf[Order]
}

// Buy sells an item on a day to the user with an e-mail address. It returns false if none is left.
func (s *Shop) Buy(ctx context.Context, mail, name string, day time.Time) (bool, error) {
	user, err := s.users.GetBy(ctx, "by_mail", mail)
	item, itemErr := s.items.Get(ctx, name)
	if err = errors.Join(err, itemErr); err != nil {
		return false, err
	}
	b := s.store.NewBatch() // the stock and the order, or neither
	b.UpdateIf(s.items.Table, oribi.Row{"name": name, "left": oribi.Add(-1)}, oribi.Gt("left", 0))
	s.orders.InBatch(b).Insert(Order{User: user.ID, Day: day, Item: name, Price: item.Price})
	if _, err := b.Commit(ctx); !errors.Is(err, oribi.ErrConflict) {
		return err == nil, err
	}
	return false, nil
}

// Page returns the first n orders of a user by day.
func (s *Shop) Page(ctx context.Context, user, n int64, opts ...oribi.ScanOption) (page []Order, err error) {
	opts = append(opts, oribi.Where(oribi.Eq("user", user)), oribi.OrderBy("by_user"), oribi.Limit(n))
	for order, scanErr := range s.orders.Scan(ctx, opts...) {
		page, err = append(page, order), scanErr // an error ends the scan
	}
	return page, err
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	lamps := flag.Int("n", 1, "kinds of lamps: there are 100 of each, and each customer wants 10")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: shop [-n N] DIR")
	}
	ctx, store := context.Background(), must(oribi.Open(flag.Arg(0), nil))
	defer store.Close()
	s := &Shop{store, must(oribi.OpenTable[User](store, "users")), must(oribi.OpenTable[Item](store, "items")),
		must(oribi.OpenTable[Order](store, "orders"))}
	users := []User{{1, "Ada", "ada@example.org"}, {2, "Bob", "bob@example.org"}}
	must(s.users.Insert(ctx, users...))
	for i := range *lamps {
		must(s.items.Insert(ctx, Item{Name: fmt.Sprint("lamp ", i), Price: oribi.NewDecimal(1990, 2), Left: 100}))
	}
	_, err := s.users.Insert(ctx, User{3, "Cyd", "bob@example.org"})
	fmt.Println("an address twice:", errors.Is(err, oribi.ErrNotUnique))
	var customers sync.WaitGroup
	for i := range 16 {
		customers.Go(func() {
			for n := range 10 * *lamps {
				name, day := fmt.Sprint("lamp ", (i+n)%*lamps), time.Date(2026, 3, 1+n%31, 0, 0, 0, 0, time.UTC)
				must(s.Buy(ctx, users[i%2].Mail, name, day))
				must(s.Page(ctx, users[i%2].ID, 5, oribi.Desc())) // the newest
			}
		})
	}
	customers.Wait()
	sold, lamp := must(s.orders.Table.Count(ctx)), must(s.items.Get(ctx, "lamp 0"))
	fmt.Printf("wanted %d, sold %d, left %d\n", 160**lamps, sold, lamp.Left)
	place := func(o Order) oribi.Key { return oribi.Key{o.User, o.Day, o.ID} } // in the index
	first := must(s.Page(ctx, 1, 5))
	second := must(s.Page(ctx, 1, 5, oribi.Above(place(first[4]))))
	back := must(s.Page(ctx, 1, 5, oribi.Below(place(second[0])), oribi.Desc()))
	slices.Reverse(back)
	fmt.Println("back on the first page:", slices.Equal(first, back), "of", len(back))
}
