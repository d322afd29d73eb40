// A column of one process's array into another column of the other's. Start it twice:
//
//   g++ -std=c++20 column.cpp $(pkg-config --cflags --libs lacuna) -o column && (./column & ./column)
#include <iostream>
#include <lacuna.hpp>

int main() {
  auto ranks = lacuna::Communicator::connect("demo", {.size = 2});  // a name that both processes know
  double field[4][5] = {};
  const auto column = lacuna::Layout::vector(4, 1, 5, lacuna::Layout::bytes(sizeof(double)));
  if (ranks.rank() == 0) ranks.send(&field[0][1], column, 1);
  if (ranks.rank() == 1) std::cout << ranks.recv(&field[0][3], column, 0).bytes << " bytes from rank 0\n";
}
