// NULLs where none is allowed: the call fails, says which pointer of which function it was, and touches nothing.
#include <gtest/gtest.h>
#include <lacuna.h>

#include <string>

namespace LACUNA_TEST_FILE {

constexpr std::int64_t kOne[] = {1};

class CNull : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(lacuna_layout_bytes(8, &layout_), LACUNA_OK);
    lacuna_layout_bytes(-1, &out_);  // so that a message of before is another one
  }
  void TearDown() override {
    EXPECT_EQ(out_, nullptr);
    lacuna_layout_free(layout_);
  }

  // "old is NULL" of lacuna_layout_vector(...).
  static void refused(lacuna_status status, const std::string& call, const std::string& what) {
    EXPECT_EQ(status, LACUNA_ERR_INVALID_ARGUMENT) << call;
    told(call, what);
  }
  static void told(const std::string& call, const std::string& what) {
    const std::string message = lacuna_error_message();
    EXPECT_NE(message.find(call.substr(0, call.find('(')) + "(): " + what), std::string::npos) << call << ": " << message;
  }

  lacuna_layout* layout_ = nullptr;
  lacuna_layout* out_ = nullptr;
};
#define REFUSED(call, what) refused(call, #call, what)

TEST_F(CNull, OfConstructors) {
  const lacuna_distribution block = LACUNA_DISTRIBUTE_BLOCK;
  const lacuna_layout* const none[] = {nullptr};
  REFUSED(lacuna_layout_bytes(8, nullptr), "layout is NULL");
  REFUSED(lacuna_layout_contiguous(1, nullptr, &out_), "old is NULL");
  REFUSED(lacuna_layout_vector(1, 1, 1, nullptr, &out_), "old is NULL");
  REFUSED(lacuna_layout_vector(1, 1, 1, layout_, nullptr), "layout is NULL");
  REFUSED(lacuna_layout_hvector(1, 1, 1, nullptr, &out_), "old is NULL");
  REFUSED(lacuna_layout_indexed(1, kOne, kOne, nullptr, &out_), "old is NULL");
  REFUSED(lacuna_layout_indexed(1, nullptr, kOne, layout_, &out_), "blocklengths is NULL");
  REFUSED(lacuna_layout_indexed(1, kOne, nullptr, layout_, &out_), "displacements is NULL");
  REFUSED(lacuna_layout_indexed_block(1, 1, nullptr, layout_, &out_), "displacements is NULL");
  REFUSED(lacuna_layout_hindexed(1, kOne, nullptr, layout_, &out_), "byte_displacements is NULL");
  REFUSED(lacuna_layout_hindexed_block(1, 1, nullptr, layout_, &out_), "byte_displacements is NULL");
  REFUSED(lacuna_layout_struct(1, kOne, kOne, nullptr, &out_), "members is NULL");
  EXPECT_EQ(lacuna_layout_struct(1, kOne, kOne, none, &out_), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(lacuna_error_message()).find("member 0 is NULL"), std::string::npos);
  REFUSED(lacuna_layout_subarray(1, kOne, kOne, nullptr, LACUNA_ORDER_C, layout_, &out_), "starts is NULL");
  REFUSED(lacuna_layout_darray(1, 0, 1, kOne, nullptr, kOne, kOne, LACUNA_ORDER_C, layout_, &out_), "distributions is NULL");
  REFUSED(lacuna_layout_darray(1, 0, 1, kOne, &block, kOne, kOne, LACUNA_ORDER_C, nullptr, &out_), "old is NULL");
  REFUSED(lacuna_layout_strided(8, 1, kOne, nullptr, &out_), "strides_bytes is NULL");
  REFUSED(lacuna_layout_resized(nullptr, 0, 8, &out_), "old is NULL");
  REFUSED(lacuna_layout_blocks(1, nullptr, kOne, &out_), "offsets is NULL");
  REFUSED(lacuna_layout_paged(8, 1, nullptr, &out_), "page_numbers is NULL");
  REFUSED(lacuna_layout_slice(nullptr, 0, 1, &out_), "whole is NULL");
  REFUSED(lacuna_layout_decode("", 0, nullptr), "layout is NULL");
}

TEST_F(CNull, OfListsWithoutEntriesIsAllowed) {
  ASSERT_EQ(lacuna_layout_hindexed(0, nullptr, nullptr, layout_, &out_), LACUNA_OK) << lacuna_error_message();
  lacuna_layout_free(out_);
  ASSERT_EQ(lacuna_layout_struct(0, nullptr, nullptr, nullptr, &out_), LACUNA_OK) << lacuna_error_message();
  lacuna_layout_free(out_);
  out_ = nullptr;
  EXPECT_EQ(lacuna_layout_describe(layout_, nullptr, 100), lacuna_layout_describe(layout_, nullptr, 0));
}

TEST_F(CNull, OfProperties) {
  EXPECT_EQ(lacuna_layout_size(nullptr), 0);
  told("lacuna_layout_size(", "layout is NULL");
  EXPECT_EQ(lacuna_layout_run_count(nullptr), 0);
  told("lacuna_layout_run_count(", "layout is NULL");
  EXPECT_EQ(lacuna_layout_lower_bound(nullptr), 0);
  EXPECT_EQ(lacuna_layout_extent(nullptr), 0);
  EXPECT_EQ(lacuna_layout_true_lower_bound(nullptr), 0);
  EXPECT_EQ(lacuna_layout_true_extent(nullptr), 0);
  EXPECT_EQ(lacuna_layout_same_runs(layout_, nullptr), 0);
  told("lacuna_layout_same_runs(", "b is NULL");
  EXPECT_EQ(lacuna_layout_describe(nullptr, nullptr, 0), 0U);
  EXPECT_EQ(lacuna_layout_explain(nullptr, nullptr, 0), 0U);
  told("lacuna_layout_explain(", "layout is NULL");
  int overlaps = 7;
  REFUSED(lacuna_layout_overlaps(nullptr, &overlaps), "layout is NULL");
  REFUSED(lacuna_layout_overlaps(layout_, nullptr), "overlaps is NULL");
  EXPECT_EQ(overlaps, 7);
  REFUSED(lacuna_layout_prepare(nullptr), "layout is NULL");
  std::size_t needed = 0;
  REFUSED(lacuna_layout_encode(nullptr, nullptr, 0, &needed), "layout is NULL");
  REFUSED(lacuna_layout_encode(layout_, nullptr, 0, nullptr), "needed is NULL");
}

TEST_F(CNull, OfCopies) {
  char memory[8] = {};
  REFUSED(lacuna_pack(nullptr, memory, 0, 8, memory), "layout is NULL");
  REFUSED(lacuna_unpack(nullptr, memory, 0, 8, memory), "layout is NULL");
  REFUSED(lacuna_transpack(layout_, memory, nullptr, memory), "dst is NULL");
  REFUSED(lacuna_team_make(2, nullptr), "team is NULL");
  REFUSED(lacuna_team_pack(nullptr, layout_, memory, 0, 8, memory), "team is NULL");
  REFUSED(lacuna_team_unpack(nullptr, layout_, memory, 0, 8, memory), "team is NULL");
}

TEST_F(CNull, OfDevices) {
  lacuna_device* device = nullptr;
  lacuna_device_plan* plan = nullptr;
  const lacuna_layout* const none[] = {nullptr};
  const lacuna_layout* const one[] = {layout_};
  REFUSED(lacuna_device_open(nullptr, &device), "name is NULL");
  REFUSED(lacuna_device_open("emulated", nullptr), "device is NULL");
  REFUSED(lacuna_device_move(nullptr, layout_, nullptr, layout_, nullptr, nullptr), "device is NULL");
  REFUSED(lacuna_device_plan_make(nullptr, 0, nullptr, nullptr, 8, &plan), "device is NULL");
  REFUSED(lacuna_device_plan_move(nullptr, nullptr, nullptr, nullptr), "plan is NULL");
  EXPECT_EQ(lacuna_device_plan_describe(nullptr, nullptr, 0), 0U);
  ASSERT_EQ(lacuna_device_open("emulated", &device), LACUNA_OK) << lacuna_error_message();
  REFUSED(lacuna_device_plan_make(device, 1, nullptr, one, 8, &plan), "src is NULL");
  EXPECT_EQ(lacuna_device_plan_make(device, 1, none, one, 8, &plan), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_device_plan_make(device, 1, one, none, 8, &plan), LACUNA_ERR_INVALID_ARGUMENT);
  lacuna_device_free(device);
}

TEST_F(CNull, OfGuides) {
  lacuna_guide* guide = nullptr;
  lacuna_choice choice{};
  std::size_t needed = 0;
  REFUSED(lacuna_guide_open(nullptr, 0, &guide), "nic is NULL");
  REFUSED(lacuna_guide_open("local", 0, nullptr), "guide is NULL");
  REFUSED(lacuna_guide_choose(nullptr, layout_, layout_, LACUNA_LATENCY, &choice), "guide is NULL");
  REFUSED(lacuna_guide_explain(nullptr, layout_, layout_, LACUNA_LATENCY, nullptr, 0, &needed), "guide is NULL");
  ASSERT_EQ(lacuna_guide_open("local", 0, &guide), LACUNA_OK) << lacuna_error_message();
  REFUSED(lacuna_guide_choose(guide, layout_, nullptr, LACUNA_LATENCY, &choice), "dst is NULL");
  REFUSED(lacuna_guide_choose_placed(guide, layout_, layout_, nullptr, &choice), "placement is NULL");
  REFUSED(lacuna_guide_explain_placed(guide, nullptr, layout_, nullptr, nullptr, 0, &needed), "src is NULL");
  lacuna_guide_free(guide);
}

TEST_F(CNull, OfConnections) {
  lacuna_comm* comm = nullptr;
  lacuna_request* request = nullptr;
  lacuna_exposed exposed{};
  int flag = 7;
  std::uint32_t number = 0;
  char memory[8] = {};
  REFUSED(lacuna_connect(nullptr, 1, 0, nullptr, nullptr, &comm), "address is NULL");
  REFUSED(lacuna_connect("alone", 1, 0, nullptr, nullptr, nullptr), "comm is NULL");
  EXPECT_EQ(lacuna_comm_rank(nullptr), -1);
  EXPECT_EQ(lacuna_comm_size(nullptr), 0);
  told("lacuna_comm_size(", "comm is NULL");
  REFUSED(lacuna_send(nullptr, memory, layout_, 0, 0), "comm is NULL");
  REFUSED(lacuna_recv(nullptr, memory, layout_, 0, 0, nullptr), "comm is NULL");
  REFUSED(lacuna_isend(nullptr, memory, layout_, 0, 0, &request), "comm is NULL");
  REFUSED(lacuna_irecv(nullptr, memory, layout_, 0, 0, &request), "comm is NULL");
  REFUSED(lacuna_wait(nullptr, &request, nullptr), "comm is NULL");
  REFUSED(lacuna_test(nullptr, &request, &flag, nullptr), "comm is NULL");
  REFUSED(lacuna_wait_any(nullptr, 1, &request, &flag, nullptr), "comm is NULL");
  REFUSED(lacuna_wait_all(nullptr, 1, &request, nullptr), "comm is NULL");
  REFUSED(lacuna_cancel(nullptr, &request, &flag), "comm is NULL");
  REFUSED(lacuna_probe(nullptr, 0, 0, &flag, nullptr), "comm is NULL");
  EXPECT_EQ(flag, 7);
  EXPECT_EQ(lacuna_progress(nullptr), 0);
  REFUSED(lacuna_register_memory(nullptr, memory, 8, &number), "comm is NULL");
  REFUSED(lacuna_deregister_memory(nullptr, 0), "comm is NULL");
  REFUSED(lacuna_expose(nullptr, memory, 8, &exposed), "comm is NULL");
  REFUSED(lacuna_withdraw(nullptr, &exposed), "comm is NULL");
  REFUSED(lacuna_put(nullptr, memory, layout_, &exposed, 0, layout_), "comm is NULL");
  REFUSED(lacuna_get(nullptr, memory, layout_, &exposed, 0, layout_), "comm is NULL");
  REFUSED(lacuna_iput(nullptr, memory, layout_, &exposed, 0, layout_, &request), "comm is NULL");
  REFUSED(lacuna_iget(nullptr, memory, layout_, &exposed, 0, layout_, &request), "comm is NULL");
  EXPECT_EQ(lacuna_comm_statistics(nullptr, nullptr, 0), 0U);
  std::size_t needed = 0;
  REFUSED(lacuna_comm_explain(nullptr, layout_, layout_, 0, nullptr, 0, &needed), "comm is NULL");
}

TEST_F(CNull, OfExchanges) {
  lacuna_exchange* exchange = nullptr;
  const lacuna_matrix matrix{};
  int done = 7;
  REFUSED(lacuna_alltoallw(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), "comm is NULL");
  REFUSED(lacuna_alltoallw_init(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &exchange), "comm is NULL");
  REFUSED(lacuna_neighbor_exchange(nullptr, 0, nullptr, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr), "comm is NULL");
  REFUSED(lacuna_neighbor_exchange_init(nullptr, 0, nullptr, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr, &exchange),
          "comm is NULL");
  REFUSED(lacuna_transpose(nullptr, &matrix, nullptr, nullptr, nullptr), "comm is NULL");
  REFUSED(lacuna_transpose_init(nullptr, &matrix, nullptr, nullptr, nullptr, &exchange), "comm is NULL");
  REFUSED(lacuna_exchange_start(nullptr), "exchange is NULL");
  REFUSED(lacuna_exchange_test(nullptr, &done), "exchange is NULL");
  REFUSED(lacuna_exchange_wait(nullptr), "exchange is NULL");
  EXPECT_EQ(lacuna_exchange_explain(nullptr, nullptr, 0), 0U);
  EXPECT_EQ(done, 7);
}

}  // namespace LACUNA_TEST_FILE
