// Hides or shows a line when its legend entry is clicked, or activated with Enter or Space.
document.querySelectorAll(".key").forEach(function (key) {
  function turn() {
    var line = key.closest("svg").querySelector('[data-line="' + key.dataset.key + '"]');
    key.classList.toggle("off", line.classList.toggle("off"));
  }
  key.addEventListener("click", turn);
  key.addEventListener("keydown", function (event) {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); turn(); }
  });
});
